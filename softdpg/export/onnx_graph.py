"""Write a policy as an ONNX graph."""

from pathlib import Path
from typing import Any

import numpy as np

from softdpg.errors import require_extra
from softdpg.export.description import Description

OPSET = 17  # the first with LayerNormalization
IR_VERSION = 8  # as old as the opset, so that older runtimes can read the file


def write_onnx(description: Description, path: Path, metadata: dict[str, str]) -> None:
    """Write an ONNX file.

    The graph has the input ``observation``, or one input for each part of a Dict observation, and the output
    ``action``. The first axis of each is the batch. Inputs are float32, whatever the type of the
    observation space.

    :param description: the policy
    :param path: file to write
    :param metadata: entries for the metadata of the model; ``softdpg`` is the version of this package
    """
    require_extra("export", "an ONNX file")
    import onnx

    graph = _Graph(onnx, description)
    model = onnx.helper.make_model(
        graph.build(),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        producer_name="softdpg",
        producer_version=metadata["softdpg"],
    )
    model.ir_version = IR_VERSION
    onnx.helper.set_model_props(model, metadata)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


class _Graph:
    """Build the graph node by node; each method returns the name of its output."""

    def __init__(self, onnx: Any, description: Description) -> None:
        self.onnx, self.description = onnx, description
        self.spec, self.arrays = description.spec, description.arrays
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def build(self) -> Any:
        helper = self.onnx.helper
        inputs = [
            helper.make_tensor_value_info(name or "observation", self.type_of(np.float32), ["batch", *shape])
            for name, shape in self.spec["parts"]
        ]
        x = self.preprocessed([value.name for value in inputs])
        for i in range(self.spec["layers"]):
            x = self.node("Gemm", x, self.array(f"layer_{i}/kernel"), self.array(f"layer_{i}/bias"))
            if i < self.spec["layers"] - 1:
                x = self.activated(self.normed(x, i))
        if "action" in self.spec:
            outputs = self.decoded(self.spec["action"], self.node("Tanh", x), "action")
            return helper.make_graph(self.nodes, "policy", inputs, outputs, list(self.constants.values()))
        actions = self.unscaled(self.node("Tanh", x))
        shape = ["batch", *self.spec["action_shape"]]
        dtype = np.result_type(np.float32, self.arrays["action/low"])
        self.nodes.append(helper.make_node("Identity", [actions], ["action"]))
        output = helper.make_tensor_value_info("action", self.type_of(dtype), shape)
        return helper.make_graph(self.nodes, "policy", inputs, [output], list(self.constants.values()))

    def preprocessed(self, names: list[str]) -> str:
        """Concatenate the parts to ``(batch, d)``, normalise in float64 as ``VecNormalize``, then as the network."""
        statistics = "observation/mean" in self.arrays
        dtype = self.type_of(np.float64 if statistics else np.float32)
        columns = [self.node("Flatten", self.node("Cast", name, to=dtype), axis=1) for name in names]
        x = columns[0] if len(columns) == 1 else self.node("Concat", *columns, axis=1)
        if statistics:
            limit = self.arrays["observation/limit"]
            x = self.node("Div", self.node("Sub", x, self.array("observation/mean")), self.array("observation/std"))
            x = self.node("Max", self.node("Min", x, self.constant("limit", limit)), self.constant("-limit", -limit))
            x = self.node("Cast", x, to=self.type_of(np.float32))
        if self.spec["input_limit"] is not None:
            x = self.node("Div", self.node("Sub", x, self.array("input/mean")), self.array("input/std"))
            least, most = (np.full((), sign * self.spec["input_limit"], np.float32) for sign in (-1, 1))
            x = self.node("Clip", x, self.constant("least_input", least), self.constant("most_input", most))
        return x

    def normed(self, x: str, i: int) -> str:
        if self.spec["layer_norm"] is None:
            return x
        scale, bias = self.array(f"norm_{i}/scale"), self.array(f"norm_{i}/bias")
        return self.node("LayerNormalization", x, scale, bias, epsilon=self.spec["layer_norm"])

    def activated(self, x: str) -> str:
        if self.spec["activation"] == "silu":
            return self.node("Mul", x, self.node("Sigmoid", x))
        return self.node({"relu": "Relu", "tanh": "Tanh", "elu": "Elu"}[self.spec["activation"]], x)

    def unscaled(self, x: str) -> str:
        """Scale from [-1, 1] to the environment's units: ``low + 0.5 (x + 1) (high - low)``."""
        low, high = self.arrays["action/low"], self.arrays["action/high"]
        shape = self.constant("action_shape", np.array([-1, *self.spec["action_shape"]], np.int64))
        dtype = np.result_type(np.float32, low)
        x = self.node("Cast", self.node("Reshape", x, shape), to=self.type_of(dtype))
        x = self.node("Add", x, self.constant("one", np.ones((), dtype)))
        x = self.node("Mul", self.node("Mul", x, self.constant("half", np.full((), 0.5, dtype))), self.range(low, high))
        return self.node("Add", x, self.constant("low", low.astype(dtype)))

    def decoded(self, part: dict[str, Any], x: str, name: str) -> list[Any]:
        """Add one output for each part of the action, named by its path, such as ``action.power``."""
        inner = part["dict"].items() if "dict" in part else enumerate(part.get("tuple", ()))
        if "dict" in part or "tuple" in part:
            return [output for key, one in inner for output in self.decoded(one, x, f"{name}.{key}")]
        if "low" in part:
            y = self.slice(x, part["start"], part["stop"], name)
            low, width = np.ravel(part["low"]), np.ravel(part["high"]) - np.ravel(part["low"])
            half = self.constant(f"{name}/half", (0.5 * width).astype(np.float32))
            middle = self.constant(f"{name}/middle", (low + 0.5 * width).astype(np.float32))
            y = self.node("Add", self.node("Mul", y, half), middle)
            y = y if part["dtype"].startswith("float") else self.node("Round", y)
        else:
            columns, start = [], part["start"]
            for i, size in enumerate(part["sizes"]):
                own = self.slice(x, start, start + size, f"{name}/{i}")
                zero = self.constant(f"{name}/zero", np.zeros((), np.float32))
                option = (
                    self.node("Cast", self.node("Greater", own, zero), to=self.type_of(np.int64))
                    if size == 1
                    else self.node("ArgMax", own, axis=1, keepdims=1)
                )
                columns.append(option)
                start += size
            first = np.broadcast_to(np.ravel(part["first"]), len(columns)).astype(np.int64)
            y = self.node("Add", self.node("Concat", *columns, axis=1), self.constant(f"{name}/first", first))
        shape = self.constant(f"{name}/shape", np.array([-1, *part["shape"]], np.int64))
        y = self.node("Cast", self.node("Reshape", y, shape), to=self.type_of(part["dtype"]))
        self.nodes.append(self.onnx.helper.make_node("Identity", [y], [name]))
        value = self.onnx.helper.make_tensor_value_info(name, self.type_of(part["dtype"]), ["batch", *part["shape"]])
        return [value]

    def slice(self, x: str, start: int, stop: int, name: str) -> str:
        """Columns ``start`` to ``stop`` of ``(batch, m)``."""
        bounds = [self.constant(f"{name}/{i}", np.array([i], np.int64)) for i in (start, stop)]
        return self.node("Slice", x, *bounds, self.constant("columns", np.array([1], np.int64)))

    def range(self, low: np.ndarray, high: np.ndarray) -> str:
        return self.constant("range", (high - low).astype(np.result_type(np.float32, low)))

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        output = f"{op}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, inputs, [output], **attributes))
        return output

    def array(self, name: str) -> str:
        return self.constant(name, self.arrays[name])

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants[name] = self.onnx.numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)
        return name

    def type_of(self, dtype: Any) -> int:
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
