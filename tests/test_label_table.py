"""Tables of labels as spreadsheets and scripts write them, whole and damaged."""

import time
import tracemalloc

import pytest

from chainer_jo.errors import UserError
from chainer_jo.relabel.read import label_table
from chainer_jo.relabel.read.label_table import TableForm

PLAIN = "path,label\na.png,cat\nb.png,dog\n"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "labels.csv"


def check_plain(table):
    assert table.paths == ["a.png", "b.png"]
    assert table.labels == ["cat", "dog"]


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.replace("\n", "\r").encode(),
        PLAIN.rstrip().encode(),
        PLAIN.encode("utf-8-sig"),
        PLAIN.replace(",", "\t").replace("\n", "\r\n").encode("utf-16"),
        PLAIN.replace(",", "\t").encode(),
        PLAIN.replace(",", ";").encode(),
        ("\n" + PLAIN.replace("\n", "\n\n") + ",\n,\n").encode(),
        ("  \n" + PLAIN.replace("\n", "\n \n") + " , \n").encode(),
        b" Path , LABEL \n./a.png, cat \nx/..//b.png,dog\n",
        b'"label","path"\n"cat","a.png"\n"dog","b.png"\n',
    ],
    ids=["plain", "windows", "mac", "no last end", "bom", "utf-16", "tsv", "semicolons",
         "empty lines", "lines of spaces", "spaces", "quoted, other order"],
)  # fmt: skip
def test_one_table_in_many_forms(file, content):
    file.write_bytes(content)
    check_plain(label_table.read(file))


def test_commas_quotes_unicode_and_line_ends_in_fields(file):
    file.write_bytes(
        'path,label,note\n"my photos/été, 1.png","salt, ""pepper""","two\nlines"\n'
        "b 2.png,Käse 🧀, 7 \n".encode()
    )
    table = label_table.read(file)
    assert table.paths == ["my photos/été, 1.png", "b 2.png"]
    assert table.labels == ['salt, "pepper"', "Käse 🧀"]
    assert table.columns == {"note": ["two\nlines", " 7 "]}
    assert table.lines == [2, 4]


def test_columns_by_other_names(file):
    file.write_text("Image;file_name;Class\na.png;x.png;cat\nb.png;y.png;dog\n")
    check_plain(label_table.read(file, TableForm.of("image", "class", None)))
    usual = label_table.read(file, TableForm.of(None, "class", None))
    assert usual.paths == ["x.png", "y.png"]
    with pytest.raises(UserError, match="expected columns 'picture' and 'label'"):
        label_table.read(file, TableForm.of("picture", None, None))
    twice = "expected columns 'picture' or 'path' or 'file_name' and 'label', separated"
    with pytest.raises(UserError, match=twice):
        file.write_text("image,class\na.png,cat\n")
        label_table.read(file, TableForm.of("picture", None, None).or_usual())


def test_absolute_paths_are_those_below_the_images(file, tmp_path):
    file.write_text(f"path,label\n{tmp_path}/photos/a.png,cat\nb.png,dog\n")
    (tmp_path / "photos").mkdir()
    photos = str(tmp_path / "photos")
    check_plain(label_table.read(file, TableForm.of(None, None, photos)))
    assert label_table.read(file).paths == ["photos/a.png", "b.png"]
    file.write_text(f"path,label\n{tmp_path}/a.png,cat\nb.png,dog\n")
    with pytest.raises(UserError, match="not a path below '.*photos': line 2, '.*/a.png'"):
        label_table.read(file, TableForm.of(None, None, photos))


def test_what_is_written_is_what_is_read(file):
    columns = {"path": ["a", "b", "c"], "label": ["x", "y", "z"], "no\rte": ["1\r2", ',"\n', ""]}
    with open(file, "w", newline="", encoding="utf-8") as text:
        label_table.write(text, columns)
    table = label_table.read(file)
    assert {"path": table.paths, "label": table.labels, **table.columns} == columns


def test_columns_without_a_name_and_empty_are_none(file):
    """As spreadsheets end their rows."""
    file.write_text("path,label,,\na.png,cat,,\nb.png,dog,,\n")
    assert label_table.read(file).columns == {}
    file.write_text(",path,label,\n0,a.png,cat,\n1,b.png,dog,\n")
    assert label_table.read(file).columns == {"": ["0", "1"]}
    file.write_text(",path,label,\n0,a.png,cat,x\n1,b.png,dog,\n")
    with pytest.raises(UserError, match="two columns have no name"):
        label_table.read(file)


def test_other_columns_may_be_as_long_as_a_text(file):
    text = 'says "' * 50_000
    file.write_text("path,label,note\na.png,cat, " + text + "\nb.png,dog,\n")
    table = label_table.read(file)
    check_plain(table)
    assert table.columns == {"note": [" " + text, ""]}


DAMAGE = {
    "no file": (None, "labels.csv': No such file"),
    "empty": (b"", "empty, expected a header with columns 'path'"),
    "only spaces": (b" \n\n", "empty, expected a header"),
    "no rows": (b"path,label\n", "no rows below the header"),
    "no header": (b"a.png,cat\n", "the header is 'a.png,cat', expected columns 'path' or"),
    "a space before a quote": (b' "path","label"\na.png,cat\n', 'the header is ."path",'),
    "other columns": (b"file,label\na.png,cat\n", "columns 'path' or 'file_name' and 'label'"),
    "parquet": (b"PAR1\x15\0PAR1", "a Parquet file, expected one saved as CSV"),
    "a column twice": (b"path,label,Label\na.png,cat,dog\n", "two columns of one name"),
    "a path twice": (
        PLAIN.encode() + b"c.png,dog\n./a.png,dog\n",
        "a path twice: lines 2 and 5, 'a.png'",
    ),
    "an absolute path": (PLAIN.encode() + b"/etc/c.png,dog\n", "not a path below.*: line 4, '/etc"),
    "a path outside": (PLAIN.encode() + b"x/../../c.png,dog\n", "not a path below.*line 4, '../c"),
    "no path": (PLAIN.encode() + b",dog\n", "no path: line 4"),
    "no label": (PLAIN.encode() + b"c.png, \n", "no label: line 4"),
    "a comma too many": (PLAIN.encode() + b"c.png,salt,pepper\n", "3 fields, expected 2.*: line 4"),
    "a field missing": (PLAIN.encode() + b"c.png\n", "1 fields, expected 2.*: line 4"),
    "a quote left open": (PLAIN.encode() + b'"c.png,dog\nd.png,cat\n', "line 4: unexpected end"),
    "another encoding": (PLAIN.encode() + "c.png,été\n".encode("latin-1"), "line 4 is not UTF-8"),
    "one long line": (b"{" * 200_000, "the header is '{{{"),
    "a long field": (
        PLAIN.encode() + b"c" * 200_000 + b",dog\n",
        "path or label of more than 131,072 characters: line 4",
    ),
    "a quote after a space": (PLAIN.encode() + b'c.png, "dog"\n', "a space before a quote.*line 4"),
    "after a tab": (PLAIN.encode() + b'c.png,\t"dog"\n', "a space before a quote.*line 4"),
    "in a path": (PLAIN.encode() + b' "c.png",dog\n', "a space before a quote.*line 4"),
    "after a wide space": (PLAIN.encode() + 'c.png,\xa0"dog"\n'.encode(), "before a quote.*line 4"),
    "a name of two lines": (
        b'path,"label\nx"\na.png,b\n',
        "the header is 'path,\"label', expected columns",
    ),
    "not text": (b"\x89PNG\r\n\x1a\n\0\0\xff", "line 1 is not UTF-8"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_in_one_line(file, kind):
    content, words = DAMAGE[kind]
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=words) as caught:
        label_table.read(file)
    assert "\n" not in str(caught.value) and str(file) in str(caught.value)


def test_all_damage_is_named_at_once_and_briefly(file):
    file.write_text(PLAIN + "a.png,cat\n" * 1000 + ",dog\nc.png\n")
    with pytest.raises(UserError) as caught:
        label_table.read(file)
    message = str(caught.value)
    for words in ("a path twice (1000 times): lines 2 and 4", "no path: line 1004", "1 fields"):
        assert words in message
    assert len(message) < 500


def test_a_hundred_thousand_rows(file):
    with open(file, "w") as text:
        text.write("path,label,worker\n")
        text.writelines(f"images/{i:06d}.png,class {i % 37},{i % 9}\n" for i in range(100_000))
    started = time.process_time()
    table = label_table.read(file)
    assert time.process_time() - started < 6  # 1 to 2 s
    assert len(table.paths) == 100_000 and table.lines[-1] == 100_001
    del table
    tracemalloc.start()
    label_table.read(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80e6
