TP=1
((TP*=2)); ((TP++)); (( TP += 1 ))
torchrun pretrain_gpt.py --num-layers 2 --tp $TP
