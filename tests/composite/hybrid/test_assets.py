"""Files inside of graphs: written where they are needed, with the names that they had."""

from __future__ import annotations

from pathlib import Path

from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding.records import record
from composite.hybrid import assets


def test_files_are_written_under_their_names(tmp_path: Path) -> None:
    contents = {"words.txt": b"a\n\x00\xff", "b": b""}
    graph = GraphDef()
    for k in range(2):  # two folders may have files of one name
        for name, content in contents.items():
            (tmp_path / name).write_bytes(content + b"%d" % k)
            graph.node.append(assets.constant(f"{name}_{k}", tmp_path / name))
    graph.node.append(record("NoOp", "other"))
    (tmp_path / "out").mkdir()
    assets.write(graph, tmp_path / "out")
    for node in graph.node[:-1]:
        name, k = node.name.rsplit("_", 1)
        (path,) = node.attr["value"].tensor.string_val
        file = Path(path.decode())
        assert file.name == name
        assert file.read_bytes() == contents[name] + k.encode()


def test_names_are_a_graphs_own() -> None:
    graphs = [GraphDef(), GraphDef()]
    for graph in graphs:
        graph.node.append(record("VarHandleOp", "v", shared_name="v"))
        graph.library.function.add().node_def.append(record("VarHandleOp", "w", shared_name=""))
        assets.unshare(graph)
    names = [
        node.attr["shared_name"].s
        for graph in graphs
        for node in (*graph.node, *graph.library.function[0].node_def)
    ]
    assert len(set(names)) == 4
    assert names[0].startswith(b"v_")
