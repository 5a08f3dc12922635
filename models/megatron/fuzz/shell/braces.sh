torchrun pretrain_gpt.py --num-layers 2 --p x{a,b,"c d"}y{1..2} {q} "{a,b}" ${U:-{a,b}} {3..1}
