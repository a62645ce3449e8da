# fsr with everything that an NVIDIA GPU needs. Build: docker build -t fsr .
# Run: docker run --rm --gpus all -v "$PWD:/kernels" fsr refine kernel.cu
FROM nvidia/cuda:13.0.2-devel-ubuntu24.04

RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      build-essential clang python3 python3-dev python3-venv \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/fsr
COPY pyproject.toml README.md LICENSE ./
COPY fsr ./fsr
RUN python3 -m venv /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir '.[cuda,ray]'

RUN useradd --create-home fsr
USER fsr
ENV PATH=/opt/venv/bin:$PATH
WORKDIR /kernels
ENTRYPOINT ["fsr"]
CMD ["--help"]
