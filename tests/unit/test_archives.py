"""Archives of servers: what is unpacked, and what is refused."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from dbdyno.servers.server import ServerProblem
from dbdyno.servers.sources import archives


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:xz") as file:
        for info, content in members:
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return path


def member(name: str, **values: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for key, value in values.items():
        setattr(info, key, value)
    return info


def test_files_links_and_rights_are_kept(tmp_path: Path) -> None:
    archive = tar(
        tmp_path / "server.tar.xz",
        (member("top/bin/program"), b"code"),
        (member("top/lib/real.so.1", mode=0o644), b"library"),
        (member("top/lib/real.so", type=tarfile.SYMTYPE, linkname="real.so.1"), b""),
        (member("top/lib/same.so", type=tarfile.LNKTYPE, linkname="top/lib/real.so.1"), b""),
    )
    archives.unpack(archive, tmp_path / "out", ["bin"])
    top = tmp_path / "out" / "top"
    assert (top / "bin/program").stat().st_mode & 0o777 == 0o755
    assert (top / "lib/real.so.1").stat().st_mode & 0o777 == 0o644
    assert (top / "lib/real.so").read_bytes() == (top / "lib/same.so").read_bytes() == b"library"


def test_a_tar_file_in_a_jar_is_unpacked(tmp_path: Path) -> None:
    inner = tar(tmp_path / "inner.txz", (member("bin/postgres", mode=0o755), b"code"))
    with zipfile.ZipFile(tmp_path / "server.jar", "w") as jar:
        jar.write(inner, "postgres-linux.txz")
        jar.writestr("META-INF/MANIFEST.MF", "x")
    archives.unpack(tmp_path / "server.jar", tmp_path / "out", ["bin"])
    assert (tmp_path / "out/bin/postgres").read_bytes() == b"code"
    assert not list((tmp_path / "out").glob("*.txz"))


@pytest.mark.parametrize(
    "info",
    [
        member("../outside"),
        member("/absolute/outside"),
        member("a/../../outside"),
        member("link", type=tarfile.SYMTYPE, linkname="../outside"),
        member("link", type=tarfile.SYMTYPE, linkname="/etc"),
        member("hard", type=tarfile.LNKTYPE, linkname="../outside"),
        member("device", type=tarfile.CHRTYPE),
        member("pipe", type=tarfile.FIFOTYPE),
    ],
)
def test_nothing_leaves_the_folder(tmp_path: Path, info: tarfile.TarInfo) -> None:
    with pytest.raises(ServerProblem, match="cannot be unpacked"):
        archives.unpack(tar(tmp_path / "evil.tar.xz", (info, b"")), tmp_path / "out", [])
    assert not (tmp_path / "outside").exists()
    assert not list((tmp_path / "out").iterdir())


def test_no_file_is_written_through_a_link(tmp_path: Path) -> None:
    archive = tar(
        tmp_path / "evil.tar.xz",
        (member("folder", type=tarfile.SYMTYPE, linkname="."), b""),
        (member("folder/file"), b"x"),
    )
    with pytest.raises(ServerProblem, match="File exists"):
        archives.unpack(archive, tmp_path / "out", [])


@pytest.mark.parametrize("last", ["p/evil", "evil"])
def test_links_that_lead_out_only_together_are_refused(tmp_path: Path, last: str) -> None:
    """Each of them is inside by its text: p -> d/x/../.., and d/x -> ../e."""
    archive = tar(
        tmp_path / "evil.tar.xz",
        (member("e", type=tarfile.DIRTYPE), b""),
        (member("p", type=tarfile.SYMTYPE, linkname="d/x/../.."), b""),
        (member("d/x", type=tarfile.SYMTYPE, linkname="../e"), b""),
        (member(last, type=tarfile.SYMTYPE, linkname="e"), b""),
    )
    with pytest.raises(ServerProblem, match="is outside of the folder"):
        archives.unpack(archive, tmp_path / "out", [])
    assert not (tmp_path / "evil").is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"evil.tar.xz", "out"}


def test_a_link_in_a_zip_file_stays_inside(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as file:
        file.writestr(info, "../../etc")
    with pytest.raises(ServerProblem, match="outside"):
        archives.unpack(tmp_path / "evil.zip", tmp_path / "out", [])


def test_sizes_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "BYTES_MAX", 10)
    archive = tar(tmp_path / "large.tgz", (member("a"), b"123456"), (member("b"), b"123456"))
    with pytest.raises(ServerProblem, match="it has more than"):
        archives.unpack(archive, tmp_path / "out", [])


@pytest.mark.parametrize("name", ["broken.jar", "broken.tar.gz", "broken.exe"])
def test_what_is_no_archive_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"not an archive")
    with pytest.raises(ServerProblem, match="cannot be unpacked"):
        archives.unpack(tmp_path / name, tmp_path / "out", [])
