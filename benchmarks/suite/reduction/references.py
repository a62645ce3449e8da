"""What the kernels of this folder compute, in torch."""

import torch
import torch.nn.functional as F


def dot(x, y):
    return torch.dot(x, y)


def sum(x):
    return x.sum()


def mean_square_error(predicted, wanted):
    return F.mse_loss(predicted, wanted)


def column_sums(a):
    return a.sum(dim=0)


def bias_grad_serial(grad_out):
    return grad_out.sum(dim=0)


def bias_grad_tree(dbias, dout):
    return dbias.add_(dout.sum(dim=0))


def column_stats_halves(data):
    wide = data.float()
    return wide.mean(dim=0), wide.square().mean(dim=0)


def prefix_sum(x):
    return torch.cumsum(x, dim=0)


def prefix_sum_rows(x):
    return torch.cumsum(x, dim=1)


def top_k(x):
    values, places = torch.topk(x, 8, dim=1)
    return values, places


def argmax_rows(x):
    return torch.argmax(x, dim=1)


def histogram_bytes(data, counts):
    return counts.add_(torch.bincount(data, minlength=256))
