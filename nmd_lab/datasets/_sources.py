"""Sources, terms of use and checksums of the data sets."""

from __future__ import annotations

from dataclasses import dataclass

SHA256 = """
50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229  ml-100k.zip
a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20  ml-1m.zip
696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436  ml-latest-small.zip
813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862  ml-10m.zip
96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3  ml-20m.zip
8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa  ml-25m.zip
e4a68655d7386b8f95f2f2424b2ff975dfdd15ffd59e0d864a14dca43e99d6ee  ml-32m.zip
cb7841756ded125b15f3d95c9f8241224065e96354c132a46ae4214deeab7615  jester_dataset_1_1.zip
4d312fd824d8c8cb2c9c952a7b1fb7c00d1f5fd3ece370f7285aa701d371748b  jester_dataset_1_2.zip
7f548d3762d3506cf7cd37d8cb9e3adb67984a7da7aa2d2096d5e0b1b884758d  jester_dataset_1_3.zip
440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609  train-images-idx3-ubyte.gz
3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c  train-labels-idx1-ubyte.gz
8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6  t10k-images-idx3-ubyte.gz
f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6  t10k-labels-idx1-ubyte.gz
"""
"""Checksums of all files for download, in the format of `sha256sum`."""

GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
MOVIELENS_PAPER = "Harper and Konstan (2015), doi.org/10.1145/2827872"
MAY_NOT_BE_PASSED_ON = (
    "for research, not for commerce, not to be passed on without permission, to be cited as "
    + MOVIELENS_PAPER
)
MAY_BE_PASSED_ON = (
    "for research, not for commerce, to be passed on under the same conditions only, to be cited "
    "as " + MOVIELENS_PAPER
)


@dataclass(frozen=True)
class Source:
    """Source of a data set."""

    name: str
    title: str
    page: str
    terms: str
    address: str = ""
    files: tuple[str, ...] = ()

    @property
    def attrs(self) -> dict[str, str]:
        """The attributes that a data set gets from its source."""
        return {"title": self.title, "source": self.page, "terms": self.terms}


def sha256_of(file: str) -> str:
    """Return the expected checksum of a file."""
    checksums = dict(line.split()[::-1] for line in SHA256.split("\n") if line)
    return checksums[file]


def _movielens(edition: str, terms: str = MAY_BE_PASSED_ON) -> Source:
    """Return the source of an edition of MovieLens."""
    title = edition.replace("k", "K").replace("m", "M") if edition[0].isdigit() else edition
    page = f"grouplens.org/datasets/movielens/{edition.removesuffix('-small')}"
    archives = (f"ml-{edition}.zip",)
    return Source(f"movielens-{edition}", f"MovieLens {title}", page, terms, GROUPLENS, archives)


MOVIELENS = {
    "100k": _movielens("100k", MAY_NOT_BE_PASSED_ON),
    "1m": _movielens("1m", MAY_NOT_BE_PASSED_ON),
    "latest-small": _movielens("latest-small"),
    "10m": _movielens("10m", MAY_NOT_BE_PASSED_ON),
    "20m": _movielens("20m"),
    "25m": _movielens("25m"),
    "32m": _movielens("32m"),
}
"""Sources of the editions of MovieLens."""

JESTER = Source(
    "jester",
    "Jester, data set 1",
    "eigentaste.berkeley.edu/dataset",
    "free for research, to be cited as Goldberg, Roeder, Gupta and Perkins (2001), "
    "Information Retrieval 4(2), 133-151",
    "https://eigentaste.berkeley.edu/dataset/archive/",
    tuple(f"jester_dataset_1_{number}.zip" for number in (1, 2, 3)),
)

MNIST = Source(
    "mnist",
    "MNIST",
    "yann.lecun.com/exdb/mnist",
    "free to use, to be cited as LeCun, Bottou, Bengio and Haffner (1998), "
    "Proceedings of the IEEE 86(11), 2278-2324",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    (
        "train-images-idx3-ubyte.gz",
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    ),
)

CBCL = Source(
    "cbcl",
    "the CBCL faces",
    "cbcl.mit.edu/software-datasets/FaceData2.html, or CBCL.mat of the literature on NMF",
    "for research, not for commerce, not to be passed on, to be credited to the MIT Center for "
    "Biological and Computational Learning",
)

MIT_LOGO = Source(
    "mit_logo",
    "the MIT logo",
    "web.mit.edu/graphicidentity, drawn on 250 x 482 pixels",
    "a trademark of the Massachusetts Institute of Technology, which allows no free use",
)
