"""Debian packages as build inputs, pinned by a lock file.

The packages come from whichever mirror the machine's APT is set up for. That
needs no trust in the mirror: nothing is unpacked before its SHA-256 is the one
in the lock file. APT runs on a configuration, indices and a status of its own
in the repository's folder, so that it needs no root, sees nothing of what the
machine has installed, and changes nothing of the machine.

`bazel run //tools/debian/lock` writes the lock file.
"""

_LOWER = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_ALPHANUMERIC = _LOWER + _LOWER.upper() + _DIGITS

_MEND = "correct it with `bazel run //tools/debian/lock`"

def _made_of(text, characters):
    """Tells whether text is a string, not empty, of these characters."""
    return type(text) == "string" and text and not [c for c in text.elems() if c not in characters]

def _is_name(text):
    return _made_of(text, _LOWER + _DIGITS + "+-.") and text[0].isalnum()

def _check_fields(what, value, fields):
    """Fails unless value is a dict with these fields and no others."""
    if type(value) != "dict" or sorted(value.keys()) != sorted(fields):
        fail("%s must have the fields %s and no others: %s" % (what, ", ".join(fields), _MEND))

def _check_package(lock, package, architecture):
    """Fails unless the package's entry in the lock file is one that can be trusted to mean what it says."""
    what = "%s: a package" % lock
    _check_fields(what, package, ["name", "version", "architecture", "sha256", "file"])
    name, version = package["name"], package["version"]
    if not _is_name(name):
        fail("%s has the name %r: %s" % (what, name, _MEND))
    what = "%s: the package %s" % (lock, name)
    if not _made_of(version, _ALPHANUMERIC + ".+-:~") or not version[0].isdigit():
        fail("%s has the version %r: %s" % (what, version, _MEND))
    if package["architecture"] not in [architecture, "all"]:
        fail("%s is for %r in a set for %s: %s" % (what, package["architecture"], architecture, _MEND))
    if not _made_of(package["sha256"], _DIGITS + "abcdef") or len(package["sha256"]) != 64:
        fail("%s has the SHA-256 %r: %s" % (what, package["sha256"], _MEND))
    if package["file"] != "%s_%s_%s.deb" % (name, version.replace(":", "%3a"), package["architecture"]):
        fail("%s has the file %r: %s" % (what, package["file"], _MEND))

def _read_set(rctx):
    """Reads and checks one set of the lock file.

    Args:
      rctx: the repository rule's context.
    Returns:
      its architecture and its packages.
    """
    lock = str(rctx.attr.lock)
    content = json.decode(rctx.read(rctx.attr.lock))
    _check_fields(lock, content, ["suite", "sets"])
    if type(content["sets"]) != "list":
        fail("%s: sets must be a list: %s" % (lock, _MEND))
    found = []
    for candidate in content["sets"]:
        _check_fields(lock + ": a set", candidate, ["name", "architecture", "closure", "requested", "packages"])
        if candidate["name"] == rctx.attr.set:
            found.append(candidate)
    if len(found) != 1:
        fail("%s has %d sets named %s instead of one: %s" % (lock, len(found), rctx.attr.set, _MEND))

    architecture, packages = found[0]["architecture"], found[0]["packages"]
    if architecture not in ["amd64", "arm64"]:
        fail("%s: the set %s is for the unknown architecture %r: %s" % (lock, rctx.attr.set, architecture, _MEND))
    if type(packages) != "list" or not packages:
        fail("%s: the set %s has no packages: %s" % (lock, rctx.attr.set, _MEND))
    names = {}
    for package in packages:
        _check_package(lock, package, architecture)
        if package["name"] in names:
            fail("%s: the set %s has %s twice: %s" % (lock, rctx.attr.set, package["name"], _MEND))
        names[package["name"]] = True
    return architecture, packages

def _shell(rctx, script, arguments = []):
    """Runs a shell script in the repository's folder."""
    return rctx.execute(
        ["sh", "-euc", script, "sh"] + arguments,
        environment = {"LC_ALL": "C.UTF-8"},
        timeout = 1800,
    )

def _last_line(result):
    """Returns the last line that a failed command wrote."""
    lines = (result.stdout + "\n" + result.stderr).strip().splitlines()
    return lines[-1] if lines else "it said nothing"

def _cache(rctx):
    """Returns the folder that keeps downloads for every checkout of this user, or None without a home."""
    environ = rctx.os.environ
    base = environ.get("XDG_CACHE_HOME")
    if not base and environ.get("HOME"):
        base = environ["HOME"] + "/.cache"
    return base + "/powercloud/debian" if base else None

# Prints the SHA-256 of every argument, one a line.
_HASH = "sha256sum -- \"$@\" | cut -c 1-64"

# Copies, from the cache $1, each .deb that it has; the others are arguments in
# pairs of hash and file. Reads and writes of the cache are best effort.
_FROM_CACHE = """
cache=$1; shift
while [ $# -gt 0 ]; do
  if [ -f "$cache/$1" ]; then cp -- "$cache/$1" "debs/$2" || rm -f -- "debs/$2"; fi
  shift 2
done
"""

_TO_CACHE = """
cache=$1; shift
mkdir -p -- "$cache"
while [ $# -gt 0 ]; do
  if cp -- "debs/$2" "$cache/.$1.$$"; then mv -f -- "$cache/.$1.$$" "$cache/$1"; else rm -f -- "$cache/.$1.$$"; fi
  shift 2
done
"""

_UPDATE = "mkdir -p apt/lists/partial apt/archives/partial && apt-get -q -c apt/apt.conf update"

_DOWNLOAD = "cd debs && apt-get -q -c ../apt/apt.conf download \"$@\""

def apt_configuration(directory, architecture):
    """Returns an APT configuration that leaves the machine's own state alone.

    Only the sources and their keys are the machine's.

    Args:
      directory: the folder, absolute, for everything that APT writes.
      architecture: the packages' architecture, whatever the machine's is.
    Returns:
      the text of the file.
    """
    return "\n".join([
        "#clear APT::Architectures;",
        "#clear APT::Update;",
        "#clear DPkg;",
        "APT::Architecture \"%s\";" % architecture,
        "APT::Architectures { \"%s\"; };" % architecture,
        "APT::Sandbox::User \"root\";",
        "Acquire::Languages \"none\";",
        "Acquire::Retries \"3\";",
        "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";",
        "Dir::Cache \"%s\";" % directory,
        "Dir::Etc::preferences \"/dev/null\";",
        "Dir::Etc::preferencesparts \"/dev/null\";",
        "Dir::State \"%s\";" % directory,
        "Dir::State::lists \"%s/lists\";" % directory,
        "Dir::State::status \"/dev/null\";",
        "",
    ])

def _wrong(rctx, packages):
    """Returns the packages whose .deb is missing or isn't the locked one, each with its hash or None."""
    wrong = []
    present = [p for p in packages if rctx.path("debs/" + p["file"]).exists]
    hashes = []
    if present:
        result = _shell(rctx, _HASH, ["debs/" + p["file"] for p in present])
        if result.return_code:
            fail("cannot hash the Debian packages of %s: %s" % (rctx.attr.set, _last_line(result)))
        hashes = result.stdout.splitlines()
    if len(hashes) != len(present):
        fail("cannot hash the Debian packages of %s: %d hashes of %d files" % (rctx.attr.set, len(hashes), len(present)))
    found = {p["name"]: h for p, h in zip(present, hashes)}
    for package in packages:
        if found.get(package["name"]) != package["sha256"]:
            wrong.append((package, found.get(package["name"])))
    return wrong

def _pairs(packages):
    pairs = []
    for package in packages:
        pairs += [package["sha256"], package["file"]]
    return pairs

def _fetch(rctx, architecture, packages):
    """Puts the .deb files of the packages into debs/, their hashes checked."""
    _shell(rctx, "mkdir debs apt")
    cache = _cache(rctx)
    if cache:
        _shell(rctx, _FROM_CACHE, [cache] + _pairs(packages))
    missing = [package for package, _ in _wrong(rctx, packages)]
    if missing:
        for tool in ["apt-get", "dpkg-deb"]:
            if not rctx.which(tool):
                fail("no %s in PATH: Debian packages can be unpacked on Debian and its relatives only" % tool)
        rctx.report_progress("fetching %d Debian packages" % len(missing))
        _shell(rctx, "cd debs && rm -f -- \"$@\"", [p["file"] for p in missing])
        rctx.file("apt/apt.conf", apt_configuration(str(rctx.path("apt")), architecture), executable = False)
        updated = _shell(rctx, _UPDATE)
        fetched = _shell(rctx, _DOWNLOAD, ["%s:%s=%s" % (p["name"], architecture, p["version"]) for p in missing])
        if fetched.return_code:
            reason = _last_line(updated) if updated.return_code else _last_line(fetched)
            fail("cannot fetch Debian packages of the set %s: %s" % (rctx.attr.set, reason))
        for package, found in _wrong(rctx, packages):
            fail("the Debian package %s has the SHA-256 %s, but %s has %s: if the lock file is right, the mirror isn't" %
                 (package["file"], found or "of no file", rctx.attr.lock, package["sha256"]))
        if cache:
            _shell(rctx, _TO_CACHE, [cache] + _pairs(missing))
    _shell(rctx, "rm -rf apt")

# Unpacks $1 into the folder $2. An absolute link would lead out of the folder
# to the machine's own files: it becomes a relative one to the same place
# inside. BUILD files would cut the package in two.
_UNPACK = """
dpkg-deb -x "$1" "$2"
cd "$2"
chmod -R u+rwX .
find . -type l -lname '/*' | while IFS= read -r link; do
  target=$(readlink -- "$link")
  ups=$(printf %s "${link#./}" | sed -e 's|[^/]*$||' -e 's|[^/]*/|../|g')
  ln -sfn -- "${ups:-./}${target#/}" "$link"
done
find . \\( -name BUILD -o -name BUILD.bazel -o -name WORKSPACE -o -name WORKSPACE.bazel \\) -type f -delete
"""

_BUILD = """package(default_visibility = ["//visibility:public"])

exports_files(glob(["debs/*.deb"]))

filegroup(
    name = "debs",
    srcs = glob(["debs/*.deb"]),
)
"""

_BUILD_UNPACKED = """
filegroup(
    name = "files",
    srcs = {files},
)
"""

# Names with a colon or a backslash (manual pages of Perl) can't be labels.
_BUILD_PACKAGE = """
filegroup(
    name = "{name}",
    srcs = glob(
        ["packages/{name}/**"],
        exclude = ["**/*:*", "**/*:*/**", "**/*\\\\\\\\*"],
    ),
)
"""

def _debian_packages_impl(rctx):
    architecture, packages = _read_set(rctx)
    _fetch(rctx, architecture, packages)
    for package in packages if rctx.attr.unpack else []:
        rctx.report_progress("unpacking " + package["name"])
        result = _shell(rctx, "mkdir -p packages;" + _UNPACK, ["debs/" + package["file"], "packages/" + package["name"]])
        if result.return_code:
            fail("cannot unpack %s: %s" % (package["file"], _last_line(result)))
    rctx.file("WORKSPACE", executable = False)
    build = _BUILD
    if rctx.attr.unpack:
        build += _BUILD_UNPACKED.format(files = [":" + p["name"] for p in packages])
        build += "".join([_BUILD_PACKAGE.format(name = p["name"]) for p in packages])
    rctx.file("BUILD.bazel", build, executable = False)

debian_packages = repository_rule(
    implementation = _debian_packages_impl,
    doc = """One set of Debian packages of the lock file, fetched, checked and unpacked.

Targets:
  //:NAME   the files of the package NAME, below packages/NAME/
  //:files  the files of all packages
  //:debs   the packages themselves, as .deb files

A filegroup leaves out links that lead nowhere within their own package, and
names that can't be labels. What needs a whole root, links and all, makes a
debian_root of //:debs.""",
    attrs = {
        "lock": attr.label(default = "//tools/debian:packages.lock.json", allow_single_file = True, doc = "The lock file."),
        "set": attr.string(mandatory = True, doc = "The name of the set in the lock file."),
        "unpack": attr.bool(default = True, doc = "Whether there are targets besides //:debs. A root needs no other."),
    },
)
