"""The workloads of the other parts: every operator of workloads/, in small sizes for programs and in sizes that tiling
rules take for design spaces."""
# One text per line: every operator, with what changes the shape of its program (padding, groups, layouts, masks, fusions).
TILED = """
add:n=4096
attention:b=2,heads=2,seq=64,kv=64,d=32
attention:b=1,heads=2,seq=32,kv=64,d=32,mask=causal
batch_gemm:b=4,m=64,n=64,k=64
bias_gelu:m=64,n=256
capsule_conv2d:n=2,h=8,w=8,ci=16,co=16,kernel=3,stride=2,pad=1
conv1d:n=2,l=64,ci=32,co=64,kernel=3,stride=2,pad=1
conv2d:n=2,h=14,w=14,ci=32,co=64,kernel=3,pad=1
conv2d:n=2,h=14,w=14,ci=32,co=64,kernel=3,pad=1,stride=2,layout=NCHW
conv2d:n=2,h=14,w=14,ci=32,co=64,kernel=3,pad=2,dilation=2,groups=4
conv2d:n=1,h=8,w=8,ci=16,co=16,kernel=1
conv2d_bn_relu:n=2,h=14,w=14,ci=16,co=32,kernel=3,pad=1
conv2d_transpose:n=2,h=4,w=4,ci=32,co=32,kernel=4,stride=2,pad=1
conv2d_winograd:n=2,h=14,w=14,ci=16,co=16,pad=1
conv3d:n=2,d=4,h=14,w=14,ci=8,co=16,kernel=3,pad=1
depthwise_conv2d:n=2,h=28,w=28,c=32,kernel=3,pad=1
gemm:m=64,n=64,k=64
gemm:m=64,n=64,k=64,layout=nt,dtype=float16
gemm:m=37,n=61,k=53
gemm:m=4,n=4,k=4096
gemm:m=64,n=64,k=64,layout=nt,dtype=uint8,dtype_b=int8
gemm:m=1,n=256,k=256
gemm_bias_relu:m=64,n=128,k=64
grouped_gemm:groups=2,m_per_group=32,n=64,k=64
layernorm:m=32,n=256
mm_relu:m=64,n=64,k=64
norm2:b=2,m=256,n=256
reduce_max:m=64,n=512
reduce_sum:m=64,n=512
reduce_sum:m=1,n=4096
rmsnorm:m=32,n=256
silu_mul:m=32,n=128
softmax:m=64,n=256
transpose2d:m=64,n=128
transpose_batch_gemm:b=2,seq=32,heads=4,d=32
""".split()

# Sizes that are not 6 in small programs.
SMALL = {"groups": 2, "kernel": 3}


def every(our):
    """Descriptions of all operators."""
    return our.tool_json("show", "ops")["ops"]


def small(our):
    """Each operator with small sizes in some of its element types."""
    for op in every(our):
        sizes = [f"{p['name']}={SMALL.get(p['name'], 6)}" for p in op["parameters"] if p["default"] == "" and not p["name"].startswith(("dtype", "acc", "out"))]
        for dtype in ("float32", "float16", "int8"):
            yield f"{op['name']}:{','.join(sizes)},dtype={dtype}"


def tiled(our):
    missing = {op["name"] for op in every(our)} - {text.split(":")[0] for text in TILED}
    if missing:
        raise SystemExit(f"operators.py has no sizes for {', '.join(sorted(missing))}")
    return TILED
