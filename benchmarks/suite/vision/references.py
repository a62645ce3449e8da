"""What the kernels of this folder compute, in torch."""

import torch.nn.functional as F


def conv2d(x, weight):
    return F.conv2d(x, weight)


def max_pool3d(x):
    return F.max_pool3d(x[:, None], 2)[:, 0]
