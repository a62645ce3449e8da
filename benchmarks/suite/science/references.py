"""What the kernels of this folder compute, in torch."""

import torch
import torch.nn.functional as F


def n_body(bodies, n):
    places, masses = bodies[:, :3], bodies[:, 3]
    parts = []
    for own in places.split(2048):  # all pairs at once would not fit
        apart = places[None] - own[:, None]
        inverse = torch.rsqrt((apart * apart).sum(dim=2) + 0.01)
        parts.append(((masses * inverse * inverse * inverse)[:, :, None] * apart).sum(dim=1))
    return torch.cat(parts)


def monte_carlo(seeds, points):
    factors = torch.cumprod(
        torch.full((2 * points,), 1664525, device=seeds.device), dim=0
    )  # modulo 2 ** 64, as all here
    before = torch.cat((torch.ones_like(factors[:1]), factors[:-1]))
    summands = 1013904223 * torch.cumsum(before, dim=0)
    inside = torch.zeros((), dtype=torch.int64, device=seeds.device)
    for some in seeds.split(16384):  # all points at once would not fit
        states = (some[:, None] * factors + summands) & 0xFFFFFFFF
        places = (states >> 8).float() * (1.0 / 16777216.0)
        inside = inside + (places[:, ::2].square() + places[:, 1::2].square() <= 1.0).sum()
    return inside


def least_squares(x, y):
    return torch.stack((x.sum(), y.sum(), torch.dot(x, x), torch.dot(x, y)))


def spmv(columns, values, x, rows, width, cols):
    starts = torch.arange(0, rows * width + 1, width, dtype=columns.dtype, device=columns.device)
    return (
        torch.sparse_csr_tensor(starts, columns.reshape(-1), values.reshape(-1), (rows, cols), check_invariants=False)
        @ x
    )


def spmv_rows(starts, columns, values, x):
    return torch.segment_reduce(values * x[columns], "sum", offsets=starts.long(), unsafe=True)


def jacobi_2d(u, f):
    following = u.clone()
    around = u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1]
    following[1:-1, 1:-1] = 0.25 * (around - f[1:-1, 1:-1])
    return following


def jacobi_3d(u):
    following = u.clone()
    inner = slice(1, -1)
    along = u[inner, inner, :-2] + u[inner, inner, 2:] + u[inner, :-2, inner] + u[inner, 2:, inner]
    following[inner, inner, inner] = (along + u[:-2, inner, inner] + u[2:, inner, inner]) * (1.0 / 6.0)
    return following


def conjugate_gradient(b):
    x, r, p = torch.zeros_like(b), b, b
    squared = (r * r).sum()
    for _ in range(4):
        padded = F.pad(p, (1, 1, 1, 1))
        q = 5.0 * p - padded[1:-1, :-2] - padded[1:-1, 2:] - padded[:-2, 1:-1] - padded[2:, 1:-1]
        alpha = squared / (p * q).sum()
        x, r = x + alpha * p, r - alpha * q
        before, squared = squared, (r * r).sum()
        p = r + (squared / before) * p
    return x
