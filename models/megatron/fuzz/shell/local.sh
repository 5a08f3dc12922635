f(){ local TP=8; echo $TP; }
TP=2
f
torchrun pretrain_gpt.py --num-layers 2 --tp $TP
