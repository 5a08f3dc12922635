TP=2
cat <<EOF > x.json
{"a": $TP}
EOF
torchrun pretrain_gpt.py --num-layers 2 --tp $TP
