srun bash -c 'torchrun pretrain_gpt.py --num-layers $1 --tp $0' 4 8
