"""
Images: handwritten digits, and those that fit none
===================================================

The digits of scikit-learn are 1,797 images of 8 x 8 pixels. A mixture of round Gaussians
finds shapes of handwriting without labels, and its scores find the images that look like
none of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import headwater as hw
from headwater import plotting

# %%
# Learn
# -----
# Sixteen components, since some digits are written in two ways. ``fit`` streams the rows
# once and goes on with passes of EM.

X, digit = load_digits(return_X_y=True)
model = hw.GaussianMixture(16, covariance_type="spherical", random_state=0).fit(X)

# %%
# How good are the groups? Name each component after the digit that it holds most often.

found = model.predict(X)
name = np.array([np.bincount(digit[found == k], minlength=10).argmax() for k in range(16)])
print(
    f"{np.mean(name[found] == digit):.0%} of the images are in a component of their digit"
)

# %%
# Odd images
# ----------
# The lowest scores belong to images that no component expects.

scores = model.score_samples(X)
odd = np.argsort(scores)[:16]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
plotting.images(model, (8, 8), left)
left.set_title("sixteen shapes that were found")
framed = np.pad(X[odd].reshape(16, 8, 8), ((0, 0), (2, 0), (2, 2)))
right.imshow(
    framed.reshape(4, 4, 10, 12).transpose(0, 2, 1, 3).reshape(40, 48), cmap="gray_r"
)
for place, row in enumerate(odd):
    right.text(
        12 * (place % 4),
        10 * (place // 4) + 3,
        str(digit[row]),
        color="#D55E00",
        fontsize=9,
        fontweight="bold",
    )
right.set_axis_off()
right.set_title("the sixteen oddest images, with their digits")
plt.show()
