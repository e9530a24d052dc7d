// The `tfr` dialect: the IR of one composite op, between its Python source and its program.
//
// Structure comes from upstream dialects: func.func (the op, and continuations that several of its
// branches share), func.call, func.return, scf.if, scf.while, scf.condition, scf.yield. The ops below
// are the values of the body. Types are gradual: `any` is the type of a value of which only the call
// shows what it is, and tfr.cast, which computes nothing, converts to and from it.
//
// IRDL binds a constraint to one type for all the operands of a variadic; tfr.call therefore has a
// variadic for each type.
irdl.dialect @tfr {
  irdl.type @tensor {}    // A tensor.
  irdl.type @sequence {}  // A Python list or tuple, of anything.
  irdl.type @dims {}      // The shape of a tensor, or an attribute of type shape.
  irdl.type @attr {}      // int, float, bool, str, dtype, None, function: known when a node expands.
  irdl.type @any {}       // One of the above.

  irdl.attribute @type {
    %name = irdl.base "#builtin.string"
    irdl.parameters(name: %name)
  }
  // A constant tensor of an element type that builtin's dense elements cannot be read back from:
  // the dtype's name, the dims, and the elements' bytes, little-endian, in hexadecimal.
  irdl.attribute @tensor_bytes {
    %dtype = irdl.base "#builtin.string"
    %dims = irdl.base "#builtin.dense_array"
    %bytes = irdl.base "#builtin.string"
    irdl.parameters(dtype: %dtype, dims: %dims, bytes: %bytes)
  }

  irdl.operation @constant {
    %integer = irdl.base "#builtin.integer"
    %float = irdl.base "#builtin.float"
    %string = irdl.base "#builtin.string"
    %none = irdl.base "#builtin.unit"
    %dtype = irdl.base @tfr::@type
    %dense = irdl.base "#builtin.dense_typed_elements"
    %bytes = irdl.base @tfr::@tensor_bytes
    %undefined = irdl.base "#builtin.symbol_ref"
    %value = irdl.any_of(%integer, %float, %string, %none, %undefined, %dtype, %dense, %bytes)
    %attr = irdl.base @tfr::@attr
    %tensor = irdl.base @tfr::@tensor
    %result = irdl.any_of(%attr, %tensor)
    irdl.attributes { "value" = %value }
    irdl.results(result: %result)
  }

  // A list, or a tuple: then the string attribute `kind` is there, and is "tuple".
  irdl.operation @list {
    %tensor = irdl.base @tfr::@tensor
    %attr = irdl.base @tfr::@attr
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %any = irdl.base @tfr::@any
    %element = irdl.any_of(%tensor, %attr, %sequence, %dims, %any)
    %result = irdl.base @tfr::@sequence
    irdl.operands(elements: variadic %element)
    irdl.results(result: %result)
  }

  irdl.operation @item {
    %attr = irdl.base @tfr::@attr
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %any = irdl.base @tfr::@any
    %value = irdl.any_of(%attr, %sequence, %dims, %any)
    %attr_index = irdl.base @tfr::@attr
    %any_index = irdl.base @tfr::@any
    %index = irdl.any_of(%attr_index, %any_index)
    %tensor = irdl.base @tfr::@tensor
    %result = irdl.any_of(%tensor, %attr, %sequence, %dims, %any)
    irdl.operands(value: %value, index: %index)
    irdl.results(result: %result)
  }

  irdl.operation @unpack {
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %any = irdl.base @tfr::@any
    %value = irdl.any_of(%sequence, %dims, %any)
    %tensor = irdl.base @tfr::@tensor
    %attr = irdl.base @tfr::@attr
    %result = irdl.any_of(%tensor, %attr, %sequence, %dims, %any)
    irdl.operands(value: %value)
    irdl.results(results: variadic %result)
  }

  // A call of a TensorFlow op or of another composite. `keywords` names the argument or attr of the
  // op for each operand, segment by segment. Two more attributes may be there, both strings:
  // `program`, the digest of the composite, and `name`, what the author calls the node.
  irdl.operation @call {
    %tensor = irdl.base @tfr::@tensor
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %attr = irdl.base @tfr::@attr
    %any = irdl.base @tfr::@any
    %tensor_result = irdl.base @tfr::@tensor
    %sequence_result = irdl.base @tfr::@sequence
    %none_result = irdl.base @tfr::@attr
    %result = irdl.any_of(%tensor_result, %sequence_result, %none_result)
    %op = irdl.base "#builtin.string"
    %keywords = irdl.base "#builtin.array"
    %true = irdl.is true
    %false = irdl.is false
    %stateful = irdl.any_of(%true, %false)
    irdl.operands(tensors: variadic %tensor, sequences: variadic %sequence, dims: variadic %dims,
                  attrs: variadic %attr, others: variadic %any)
    irdl.attributes { "op" = %op, "keywords" = %keywords, "stateful" = %stateful }
    irdl.results(result: %result)
  }

  irdl.operation @unary {
    %neg = irdl.is "neg"
    %pos = irdl.is "pos"
    %not = irdl.is "not"
    %invert = irdl.is "invert"
    %operator = irdl.any_of(%neg, %pos, %not, %invert)
    %tensor = irdl.base @tfr::@tensor
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %attr = irdl.base @tfr::@attr
    %any = irdl.base @tfr::@any
    %operand = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    %tensor_result = irdl.base @tfr::@tensor
    %attr_result = irdl.base @tfr::@attr
    %any_result = irdl.base @tfr::@any
    %result = irdl.any_of(%tensor_result, %attr_result, %any_result)
    irdl.operands(operand: %operand)
    irdl.attributes { "operator" = %operator }
    irdl.results(result: %result)
  }

  irdl.operation @binary {
    %add = irdl.is "add"
    %sub = irdl.is "sub"
    %mul = irdl.is "mul"
    %truediv = irdl.is "truediv"
    %floordiv = irdl.is "floordiv"
    %mod = irdl.is "mod"
    %pow = irdl.is "pow"
    %matmul = irdl.is "matmul"
    %and = irdl.is "and"
    %or = irdl.is "or"
    %xor = irdl.is "xor"
    %lshift = irdl.is "lshift"
    %rshift = irdl.is "rshift"
    %iadd = irdl.is "iadd"  // `+=` and `*=` on what may be a list, which they would change.
    %imul = irdl.is "imul"
    %operator = irdl.any_of(%add, %sub, %mul, %truediv, %floordiv, %mod, %pow, %matmul, %and, %or,
                            %xor, %lshift, %rshift, %iadd, %imul)
    %tensor = irdl.base @tfr::@tensor
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %attr = irdl.base @tfr::@attr
    %any = irdl.base @tfr::@any
    %lhs = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    %rhs = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    %result = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.attributes { "operator" = %operator }
    irdl.results(result: %result)
  }

  irdl.operation @compare {
    %eq = irdl.is "eq"
    %ne = irdl.is "ne"
    %lt = irdl.is "lt"
    %le = irdl.is "le"
    %gt = irdl.is "gt"
    %ge = irdl.is "ge"
    %in = irdl.is "in"
    %not_in = irdl.is "not_in"
    %is = irdl.is "is"
    %is_not = irdl.is "is_not"
    %operator = irdl.any_of(%eq, %ne, %lt, %le, %gt, %ge, %in, %not_in, %is, %is_not)
    %tensor = irdl.base @tfr::@tensor
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %attr = irdl.base @tfr::@attr
    %any = irdl.base @tfr::@any
    %lhs = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    %rhs = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    %result = irdl.any_of(%tensor, %attr, %any)
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.attributes { "operator" = %operator }
    irdl.results(result: %result)
  }

  // Python's truth of a value: the condition of an scf.if.
  irdl.operation @truth {
    %tensor = irdl.base @tfr::@tensor
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %attr = irdl.base @tfr::@attr
    %any = irdl.base @tfr::@any
    %value = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    %result = irdl.is i1
    irdl.operands(value: %value)
    irdl.results(result: %result)
  }

  // The same value under another static type.
  irdl.operation @cast {
    %tensor = irdl.base @tfr::@tensor
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %attr = irdl.base @tfr::@attr
    %any = irdl.base @tfr::@any
    %value = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    %result = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    irdl.operands(value: %value)
    irdl.results(result: %result)
  }

  irdl.operation @shape {
    %tensor = irdl.base @tfr::@tensor
    %any = irdl.base @tfr::@any
    %value = irdl.any_of(%tensor, %any)
    %result = irdl.base @tfr::@dims
    irdl.operands(tensor: %value)
    irdl.results(result: %result)
  }

  irdl.operation @rank {
    %tensor = irdl.base @tfr::@tensor
    %any = irdl.base @tfr::@any
    %value = irdl.any_of(%tensor, %any)
    %result = irdl.base @tfr::@attr
    irdl.operands(tensor: %value)
    irdl.results(result: %result)
  }

  irdl.operation @dtype {
    %tensor = irdl.base @tfr::@tensor
    %any = irdl.base @tfr::@any
    %value = irdl.any_of(%tensor, %any)
    %result = irdl.base @tfr::@attr
    irdl.operands(tensor: %value)
    irdl.results(result: %result)
  }

  irdl.operation @length {
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %attr = irdl.base @tfr::@attr
    %any = irdl.base @tfr::@any
    %value = irdl.any_of(%sequence, %dims, %attr, %any)
    %result = irdl.base @tfr::@attr
    irdl.operands(value: %value)
    irdl.results(result: %result)
  }

  // A function of Python by its name. enumerate(), zip() and reversed() give lists.
  irdl.operation @builtin {
    %range = irdl.is "range"
    %enumerate = irdl.is "enumerate"
    %zip = irdl.is "zip"
    %reversed = irdl.is "reversed"
    %list = irdl.is "list"
    %tuple = irdl.is "tuple"
    %float = irdl.is "float"
    %int = irdl.is "int"
    %round = irdl.is "round"
    %abs = irdl.is "abs"
    %divmod = irdl.is "divmod"
    %is_compatible_with = irdl.is "is_compatible_with"
    %pow = irdl.is "pow"
    %min = irdl.is "min"
    %max = irdl.is "max"
    %sum = irdl.is "sum"
    %sum_compensated = irdl.is "sum_compensated"  // sum() of Python 3.12 and later
    %any_of = irdl.is "any"
    %all_of = irdl.is "all"
    %sorted = irdl.is "sorted"
    %isinstance = irdl.is "isinstance"
    %str = irdl.is "str"
    %repr = irdl.is "repr"
    %ascii = irdl.is "ascii"
    %format = irdl.is "format"
    %join = irdl.is "join"  // of a list and a separator
    %function = irdl.any_of(%range, %enumerate, %zip, %reversed, %list, %tuple, %float, %int, %round,
                            %abs, %divmod, %is_compatible_with, %pow, %min, %max, %sum,
                            %sum_compensated, %any_of, %all_of, %sorted, %isinstance, %str, %repr,
                            %ascii, %format, %join)
    %tensor = irdl.base @tfr::@tensor
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %attr = irdl.base @tfr::@attr
    %any = irdl.base @tfr::@any
    %argument = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    %tensor_result = irdl.base @tfr::@tensor
    %sequence_result = irdl.base @tfr::@sequence
    %attr_result = irdl.base @tfr::@attr
    %any_result = irdl.base @tfr::@any
    %result = irdl.any_of(%tensor_result, %sequence_result, %attr_result, %any_result)
    irdl.operands(arguments: variadic %argument)
    irdl.attributes { "function" = %function }
    irdl.results(result: %result)
  }

  // value[...]. `spec` has a letter for each part: i an index, s a slice (three operands), e an
  // ellipsis, n a new axis.
  irdl.operation @subscript {
    %tensor = irdl.base @tfr::@tensor
    %sequence = irdl.base @tfr::@sequence
    %dims = irdl.base @tfr::@dims
    %attr = irdl.base @tfr::@attr
    %any = irdl.base @tfr::@any
    %value = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    %part = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    %result = irdl.any_of(%tensor, %sequence, %dims, %attr, %any)
    %spec = irdl.base "#builtin.string"
    irdl.operands(value: %value, parts: variadic %part)
    irdl.attributes { "spec" = %spec }
    irdl.results(result: %result)
  }

  // An error when it is reached; its results stand for values that are never computed.
  irdl.operation @raise {
    %any = irdl.base @tfr::@any
    %result = irdl.base @tfr::@any
    %error = irdl.base "#builtin.string"
    irdl.operands(pieces: variadic %any)
    irdl.attributes { "error" = %error }
    irdl.results(results: variadic %result)
  }
}
