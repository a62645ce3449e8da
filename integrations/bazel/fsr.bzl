"""Winners of fsr in Bazel: `load("//:fsr.bzl", "fsr_kernel", "fsr_program")`. Tried with Bazel 4.2.3 (docs/builds.md).

A compiler launcher looks into the user's cache, which is no input of a build, so these actions run outside the sandbox
and on this machine. Bazel runs one anew when the kernel, a header or `winners` changes: name there what
`fsr lookup --manifest winners.txt FOLDER` wrote, and a winner that arrives is built at once.
"""

_LAUNCH = """
if command -v fsr-launch > /dev/null; then exec fsr-launch nvcc "$@"; fi
exec nvcc "$@"
"""
_HERE = {"no-sandbox": "1", "no-remote": "1"}

def _compile(ctx, source, command, inputs):
    built = ctx.actions.declare_file(ctx.label.name + "." + source.basename + ".o")
    arguments = ctx.actions.args()
    arguments.add("-arch=" + ctx.attr.arch)
    arguments.add_all(ctx.attr.flags)
    arguments.add("-c", source)
    arguments.add("-o", built)
    ctx.actions.run_shell(
        command = command,
        arguments = [arguments],
        inputs = [source] + inputs,
        outputs = [built],
        mnemonic = "FsrKernel",
        progress_message = "Compiling %s" % source.short_path,
        execution_requirements = _HERE,
        use_default_shell_env = True,  # .bazelrc names what passes: PATH, HOME, FSR_HOME, FSR_LAUNCH
    )
    return built

def _kernel_impl(ctx):
    built = _compile(ctx, ctx.file.src, _LAUNCH, ctx.files.hdrs + ctx.files.winners)
    return [DefaultInfo(files = depset([built]))]

def _program_impl(ctx):
    objects = [_compile(ctx, source, "exec nvcc \"$@\"", ctx.files.hdrs) for source in ctx.files.srcs] + ctx.files.deps
    arguments = ctx.actions.args()
    arguments.add("-arch=" + ctx.attr.arch)
    arguments.add_all(objects)
    arguments.add("-o", ctx.outputs.program)
    ctx.actions.run_shell(
        command = "exec nvcc \"$@\"",
        arguments = [arguments],
        inputs = objects,
        outputs = [ctx.outputs.program],
        mnemonic = "FsrLink",
        execution_requirements = _HERE,
        use_default_shell_env = True,
    )
    return [DefaultInfo(executable = ctx.outputs.program)]

_FLAGS = {
    "arch": attr.string(default = "sm_90", doc = "the GPU that is built for: a winner is one for this alone"),
    "flags": attr.string_list(doc = "of nvcc"),
    "hdrs": attr.label_list(allow_files = True, doc = "local headers"),
}

fsr_kernel = rule(
    implementation = _kernel_impl,
    doc = "An object of a .cu file, of its winner where there is one; FSR_LAUNCH=off|verbose|queue as ever.",
    attrs = dict(
        src = attr.label(allow_single_file = [".cu"], mandatory = True),
        winners = attr.label_list(allow_files = True, doc = "manifests; a changed one compiles anew"),
        **_FLAGS
    ),
)

fsr_program = rule(
    implementation = _program_impl,
    doc = "A program of C++ sources and kernels, linked by nvcc.",
    attrs = dict(
        srcs = attr.label_list(allow_files = [".cpp", ".cc"]),
        deps = attr.label_list(doc = "kernels"),
        **_FLAGS
    ),
    outputs = {"program": "%{name}.bin"},
    executable = True,
)
