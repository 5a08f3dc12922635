TP=1
printf -v TP "%02d" 4
torchrun pretrain_gpt.py --num-layers 2 --tp $TP
