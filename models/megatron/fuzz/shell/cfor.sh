TP=1
for ((i=0;i<3;i++)); do TP=$((TP*2)); done
torchrun pretrain_gpt.py --num-layers 2 --tp $TP
