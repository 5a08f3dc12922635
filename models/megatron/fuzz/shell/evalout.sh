TP=2; eval $(echo TP=4)
torchrun pretrain_gpt.py --num-layers 2 --tp $TP
