"""What the kernels of this folder compute, in torch."""

import torch
import torch.nn.functional as F


def sigmoid(x):
    return torch.sigmoid(x)


def relu(x):
    return torch.relu(x)


def gelu(x):
    return F.gelu(x, approximate="tanh")


def gelu_backward(x, dy):
    return torch.ops.aten.gelu_backward(dy, x, approximate="tanh")


def gelu_backward_bf16(inp, dout):
    return torch.ops.aten.gelu_backward(dout, inp, approximate="tanh")


def saxpy_strided(a, x, y):
    return y.add_(x, alpha=a)


def adamw(w, g, m, v, lr, decay, correction1, correction2):
    m.mul_(0.9).add_(g, alpha=0.1)
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    w.sub_(lr * ((m / correction1) / ((v / correction2).sqrt() + 1e-8) + decay * w))
    return w, m, v


def rope(x, cosines, sines, half):
    first, second = x[..., :half], x[..., half:]
    c, s = cosines[None, :, None, :], sines[None, :, None, :]
    return torch.cat((first * c - second * s, first * s + second * c), dim=-1)
