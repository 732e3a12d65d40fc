"""Find the files of a data set, in a folder or an archive, or download them.

The places are, in this order: the argument `path`; the folder of the data set in the folder that
the environment variable NMD_LAB_DATA names; the cache of downloads of pooch. With `path` nothing is
downloaded.
"""

from __future__ import annotations

import os
import warnings
import zipfile
from importlib.resources.abc import Traversable
from pathlib import Path

from nmd_lab.warnings import NMDWarning

from ._sources import Source, sha256_of

PathLike = str | os.PathLike[str]


def locate(
    source: Source, path: PathLike | None, *names: str, archive: str | None = None
) -> Traversable:
    """Return one file of a data set."""
    root = os.environ.get("NMD_LAB_DATA")
    folder = Path(path) if path is not None else Path(root) / source.name if root else None
    if folder is not None:
        if folder.suffix == ".zip" and folder.is_file():
            return _member(folder, names)
        for name in names:
            if (folder / name).is_file():
                return folder / name
        if archive is not None and (folder / archive).is_file():
            return _member(folder / archive, names)
    file = archive or names[0]
    if path is None and file in source.files:
        downloaded = _download(source, file)
        return _member(downloaded, names) if archive else downloaded
    missing = (
        "path is not given and NMD_LAB_DATA not set"
        if folder is None
        else f"{str(folder / names[0])!r} does not exist"
    )
    raise FileNotFoundError(
        f"{missing}: get {source.title} from {source.page}, and lay it out as data/README.md says."
    )


def _member(archive: Path, names: tuple[str, ...]) -> Traversable:
    """Return a file of an archive, from any folder inside it."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = opened.namelist()
    except zipfile.BadZipFile as error:
        raise ValueError(f"{str(archive)!r} is not a zip archive: get it again.") from error
    for member in members:
        if member.rpartition("/")[2] in names:
            return zipfile.Path(archive, member)
    raise FileNotFoundError(f"{str(archive)!r} holds no {names[0]}: get the right archive.")


def _download(source: Source, file: str) -> Path:
    """Return a file with the right checksum from the cache, after a download if necessary."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"{source.title} is neither given by path= nor under NMD_LAB_DATA, and the download "
            "takes pooch: pip install 'nmd-lab[data]'."
        ) from error
    cache, address = pooch.os_cache("nmd_lab") / source.name, source.address + file
    if not (cache / file).is_file():
        warnings.warn(
            f"downloading {source.title} from {address} to {str(cache)!r}; terms of use "
            f"({source.page}): {source.terms}.",
            NMDWarning,
            stacklevel=4,
        )
    pooch.get_logger().setLevel("WARNING")  # the warning above says the same
    checksum = sha256_of(file)
    try:
        downloaded = pooch.retrieve(address, f"sha256:{checksum}", fname=file, path=cache)
    except OSError as error:
        raise ConnectionError(
            f"{address} cannot be downloaded ({type(error).__name__}): get {source.title} from "
            f"{source.page} yourself, and lay it out as data/README.md says."
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{address} is not the file whose SHA-256 begins {checksum[:12]}: the "
            "download was damaged or the file has changed; try again, or give path=."
        ) from error
    return Path(downloaded)
