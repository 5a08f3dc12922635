Y=2; X=1; TP=2
while read l; do if [ $X = 1 ]; then TP=2; else TP=3; fi; X=2; done < /etc/passwd
torchrun pretrain_gpt.py --num-layers 2 --tp $TP
