"""Captions of the paper's figures, paraphrased."""

FIGURES = {
    1: "The loop of the method: the network's output probabilities replace the noisy labels, and "
    "network parameters and labels are updated in turn, epoch by epoch.",
    2: "Test accuracy by learning rate: it decreases gradually at 0.02 and is still high at the "
    "end of training at 0.2.",
    3: "Training loss by noise rate: at the end, at a low learning rate, the loss is close to 0 "
    "even at a noise rate of 0.9. Early, at a high learning rate, the loss increases with the "
    "noise rate.",
    4: "Recovery accuracy of soft and hard labels: soft labels converge faster and reach the best "
    "accuracy.",
    5: "Test accuracy by kind of labels: pseudo labels give a lower accuracy than symmetric noise "
    "even where fewer labels are corrupted, also after the label update.",
    6: "Training loss by kind of labels: the loss on pseudo labels is lower than under symmetric "
    "noise even where more labels are corrupted. After the label update, each loss follows the "
    "loss on the true labels, which suggests that the updated labels fit the network completely.",
    7: "Images relabelled from Hoodie to T-shirt: the two with the highest and the two with the "
    "lowest probability of T-shirt.",
    8: "Images relabelled from T-shirt to Hoodie: the two with the highest and the two with the "
    "lowest probability of Hoodie.",
}
"""By number."""
