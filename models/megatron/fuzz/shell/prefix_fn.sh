f(){ torchrun pretrain_gpt.py --num-layers 2 --tp $TP; }
TP=2
TP=4 f
