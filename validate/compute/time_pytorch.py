#!/usr/bin/env python3
"""Times forward and backward passes of whole models in PyTorch on this machine's GPU, as rows for
whole_models.csv: weights and activations in bf16, flash attention of scaled_dot_product_attention,
random weights and tokens, no optimizer.

    time_pytorch.py DEVICE [SECONDS]

DEVICE is the preset that the rows are for, such as h100. Each row is printed when it is measured: the
median of seven steps after three. Rows that would begin later than SECONDS after the start (240 if
not given) are left out. `compiled` is torch.compile of every block and of the loss, `eager` neither.
"""

import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

COLUMNS = ("id,group,device,use,block,layers,hidden,heads,kv_heads,ffn,vocab,seq_len,micro_batch,"
           "tensor_parallel,sequence_parallel,context_parallel,stages,chunks,micro_batches,dropout,"
           "head_share,format,attention,fusion,repeated,fp32_gradients,measured_ms")
MASKED = 0.15  # of an encoder's positions, those that its head sees
# (block, layers, hidden, heads, kv_heads, ffn, vocab), then (seq_len, micro_batch, whether compiled too).
MODELS = {
    "gpt 1.3B": (("gpt", 24, 2048, 16, 16, 8192, 50304),
                 ((2048, 8, True), (2048, 2, False), (8192, 2, False))),
    "bert-large": (("encoder", 24, 1024, 16, 16, 4096, 30528),
                   ((128, 64, True), (512, 16, True), (128, 16, False))),
    "llama 8B, 8 layers": (("gated", 8, 4096, 32, 8, 14336, 128256),
                           ((8192, 1, True), (2048, 4, False))),
}


class Block(torch.nn.Module):
    """Pre-norm, of an encoder post-norm with dropout; gated: RMS norms, rotary embedding, SwiGLU."""

    def __init__(self, kind, hidden, heads, kv_heads, ffn):
        super().__init__()
        self.kind, self.heads, self.kv_heads, self.size = kind, heads, kv_heads, hidden // heads
        bias = kind != "gated"
        norm = torch.nn.RMSNorm if kind == "gated" else torch.nn.LayerNorm
        self.norms = torch.nn.ModuleList([norm(hidden), norm(hidden)])
        self.qkv = torch.nn.Linear(hidden, (heads + 2 * kv_heads) * self.size, bias=bias)
        self.out = torch.nn.Linear(hidden, hidden, bias=bias)
        self.up = torch.nn.Linear(hidden, ffn * (2 if kind == "gated" else 1), bias=bias)
        self.down = torch.nn.Linear(ffn, hidden, bias=bias)

    def attend(self, x, rotary):
        batch, tokens, _ = x.shape
        sizes = [self.heads * self.size] + 2 * [self.kv_heads * self.size]
        q, k, v = (t.view(batch, tokens, -1, self.size).transpose(1, 2)
                   for t in self.qkv(x).split(sizes, dim=-1))
        if self.kind == "gated":
            q, k = (rotate(t, *rotary) for t in (q, k))
        drop = 0.1 if self.kind == "encoder" else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=self.kind != "encoder",
                                           enable_gqa=self.heads != self.kv_heads)
        return self.out(y.transpose(1, 2).reshape(x.shape))

    def feed(self, x):
        if self.kind != "gated":
            return self.down(F.gelu(self.up(x), approximate="tanh"))
        gate, value = self.up(x).chunk(2, dim=-1)
        return self.down(F.silu(gate) * value)

    def forward(self, x, rotary):
        if self.kind == "encoder":
            x = self.norms[0](x + F.dropout(self.attend(x, rotary), 0.1))
            return self.norms[1](x + F.dropout(self.feed(x), 0.1))
        x = x + self.attend(self.norms[0](x), rotary)
        return x + self.feed(self.norms[1](x))


def rotate(x, cosine, sine):
    low, high = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-high, low), dim=-1) * sine


def rotary_of(tokens, size):
    angles = torch.outer(torch.arange(tokens), 1e4 ** (-torch.arange(0, size, 2) / size)).repeat(1, 2)
    return angles.cos().bfloat16(), angles.sin().bfloat16()


def loss_of(logits, targets):
    return F.cross_entropy(logits.float(), targets)


class Model(torch.nn.Module):
    def __init__(self, kind, layers, hidden, heads, kv_heads, ffn, vocab):
        super().__init__()
        self.share = MASKED if kind == "encoder" else 1
        self.embedding = torch.nn.Embedding(vocab, hidden)
        self.blocks = torch.nn.ModuleList([Block(kind, hidden, heads, kv_heads, ffn)
                                           for _ in range(layers)])
        self.norm = torch.nn.LayerNorm(hidden)
        self.head = torch.nn.Linear(hidden, vocab, bias=False)
        self.loss = loss_of

    def forward(self, tokens, targets, rotary):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, rotary)
        seen = targets.shape[1]
        return self.loss(self.head(self.norm(x[:, :seen])).flatten(0, 1), targets.flatten())

    def compile_parts(self):
        for block in self.blocks:
            block.compile()
        self.loss = torch.compile(loss_of)


def median_ms(model, seq_len, micro_batch):
    vocab, size = model.embedding.num_embeddings, model.blocks[0].size
    tokens = torch.randint(vocab, (micro_batch, seq_len))
    targets = tokens[:, :int(seq_len * model.share)].contiguous()
    rotary, samples = rotary_of(seq_len, size), []
    for _ in range(10):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            model(tokens, targets, rotary).backward()
        stop.record()
        model.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(stop))
    return statistics.median(samples[3:])


def rows():
    """Eager ones first: the compiler takes longest."""
    for compiled in (False, True):
        for name, (shape, sizes) in MODELS.items():
            yield name, shape, [(s, b) for s, b, both in sizes if both or not compiled], compiled


def main():
    device, limit = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 240
    began = time.monotonic()
    if not torch.cuda.is_available():
        print("PyTorch finds no GPU", file=sys.stderr)
        return 4
    torch.manual_seed(1)
    torch.set_default_device("cuda")
    print(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, time_pytorch.py\n{COLUMNS}")
    for name, shape, sizes, compiled in rows():
        model = Model(*shape).bfloat16()
        if compiled:
            model.compile_parts()
        for seq_len, micro_batch in sizes:
            if time.monotonic() - began > limit:
                return 0
            how = "compiled" if compiled else "eager"
            print(f"PyTorch: {name.replace(',', '')} s{seq_len} b{micro_batch} {how},PyTorch,{device},"
                  f"measured,{','.join(map(str, shape))},{seq_len},{micro_batch},1,no,1,1,1,1,"
                  f"{'yes' if shape[0] == 'encoder' else 'no'},{model.share},half,flash2,{how},"
                  f"nothing,no,{median_ms(model, seq_len, micro_batch):.2f}", flush=True)
        del model
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
