case 4 in [0-9]) TP=4 ;; *) TP=8 ;; esac
torchrun pretrain_gpt.py --num-layers 2 --tp $TP
