"""The page of ``chainer-jo relabel``: what a browser lets it do, and what it says of a machine."""

import re
import shutil
from base64 import b64encode
from hashlib import sha256

import pytest
from chainer.dataset import download
from own_images import BY_FEATURES, make, run
from processes import run as run_process

PAYLOAD = "document.documentElement.setAttribute('data-ran', '1')"
CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-sync", "--disable-background-networking", "--disable-component-update",
            "--virtual-time-budget=4000", "--dump-dom")  # fmt: skip


@pytest.fixture(scope="module")
def relabel_page(tmp_path_factory):
    data, out = (tmp_path_factory.mktemp(name) for name in ("private", "out"))
    make(data)
    features = "--features", data / "features.npz", *BY_FEATURES
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(download, "_dataset_root", str(out / "cache"))
        assert run("relabel", data / "labels.csv", *features, "--out", out) == 0
    return out / "report.html"


@pytest.fixture
def page(relabel_page):
    return relabel_page.read_text(encoding="utf-8")


def test_a_page_may_use_its_own_style_and_script_alone(page):
    before, _, rest = page.partition('<meta http-equiv="Content-Security-Policy" content="')
    policy, _, after = rest.partition('">')
    assert "<style" not in before and "<script" not in before
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert allowed["default-src"] == allowed["base-uri"] == allowed["form-action"] == "'none'"
    for tag in ("style", "script"):
        own = re.findall(f"<{tag}>(.*?)</{tag}>", after, re.DOTALL)
        digests = [b64encode(sha256(text.encode()).digest()).decode() for text in own]
        expected = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
        assert allowed[f"{tag}-src"] == expected


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_what_gets_into_a_page_does_not_run(page, tmp_path):
    """The page's own script does: it shows images."""
    foreign = f'<img src="x" onerror="{PAYLOAD}"><script>{PAYLOAD}</script>'
    path, profile = tmp_path / "page.html", f"--user-data-dir={tmp_path / 'profile'}"
    path.write_text(page.replace("<h1>", f"{foreign}<h1>", 1), encoding="utf-8")
    shown = run_process([*CHROMIUM, profile, path.as_uri()], timeout=120).stdout
    assert foreign[:9] in shown and "data-ran" not in re.search("<html[^>]*>", shown)[0]
    assert shown.count("<figure") > page.count("<figure") or 'id="content"' not in page


def test_a_page_does_not_say_where_the_data_were(page):
    assert "<title>Corrected labels: labels.csv</title>" in page and "private" not in page
