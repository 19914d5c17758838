"""CPU: oneDNN behind convolutions and batch normalisation."""
