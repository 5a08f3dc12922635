A=(1 2 4 8)
torchrun pretrain_gpt.py --num-layers 2 --tp ${A[@]:1:2} --m ${A[-1]}
