C=(1 2 3); C[0]=4
torchrun pretrain_gpt.py --num-layers 2 --tp ${C[0]}
