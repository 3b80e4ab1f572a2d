"""Manifests that hold and make no sense are none."""

import pytest

from agentsh.workspace.trees import Tree, decode, encode


@pytest.mark.parametrize("depth", ["1e999", "NaN", "[]", "null", '"x"'])
def test_a_depth_that_is_none_makes_no_manifest(depth: str) -> None:
    whole = encode(Tree({}))
    assert decode(whole).nodes == {}
    with pytest.raises(ValueError, match=r"manifest|integer|int"):
        decode(whole.replace(b'"depth":0', b'"depth":' + depth.encode()))
