"""CUDA: cuDNN behind convolutions and batch normalisation, own kernels, a captured step."""
