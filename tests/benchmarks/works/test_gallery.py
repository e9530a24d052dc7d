"""The sizes of the gallery: every op has them, and takes what is drawn."""

from __future__ import annotations

import pytest
import tensorflow as tf

from benchmarks.works.gallery import CALLS, GALLERY, GalleryWork
from tests.conftest import ROOT


def test_every_file_of_the_gallery_is_timed() -> None:
    files = {path.stem for path in (ROOT / "examples" / "gallery").glob("*.py")}
    assert {work.function.partition(".")[0] for work in GALLERY.values()} == files - {"precision"}


@pytest.mark.parametrize("work", GALLERY.values(), ids=GALLERY)
def test_an_op_takes_what_is_drawn(work: GalleryWork) -> None:
    op = work.op()
    firsts, others = work.inputs()
    assert len(firsts) == (len(work.chains) or CALLS)
    assert len({first.tobytes() for first in firsts}) == len(firsts)
    first = firsts if work.chains else firsts[:1]
    args = tf.nest.map_structure(tf.constant, [*first, *others])
    traced = tf.function(lambda: tf.nest.flatten(op(*args, **work.attrs))).get_concrete_function()
    for x, output in zip(args, work.chains, strict=False):
        assert traced.output_shapes[output] == x.shape
