TP=1
for i in $(seq 2); do TP=$((TP*2)); done
torchrun pretrain_gpt.py --num-layers 2 --tp $TP
