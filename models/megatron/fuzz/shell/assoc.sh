declare -A C=([tp]=2 [m]=4)
C[tp]=4
torchrun pretrain_gpt.py --num-layers 2 --tp ${C[tp]}
