"""rules_oci for Bazel 4.2: the same names and attributes, made by //tools/oci.

Where rules_oci takes a list or a dictionary, or a file with its content, so do
these macros. A file has one item a line; ports and volumes may be separated by
commas as well.
"""

load("//oci/private:image.bzl", _oci_image = "oci_image")
load("//oci/private:image_index.bzl", _oci_image_index = "oci_image_index")
load("//oci/private:load.bzl", _oci_load = "oci_load")
load("//oci/private:push.bzl", _oci_push = "oci_push")
load("//oci/private:text.bzl", "digest_file", "text_file")

oci_image_index = _oci_image_index
oci_image_rule = _oci_image
oci_push_rule = _oci_push

# Attributes that every rule has and that the rules which a macro adds inherit.
_COMMON = ["compatible_with", "exec_compatible_with", "features", "restricted_to", "tags", "target_compatible_with", "testonly", "visibility"]

def _common(attributes):
    return {name: attributes[name] for name in _COMMON if name in attributes}

def _file(name, kind, value, common):
    """Returns the label of a file with the content of a list or dictionary.

    What is a label already, or None, stays as it is.
    """
    if type(value) == "dict":
        lines = ["%s=%s" % item for item in value.items()]
    elif type(value) == "list":
        lines = value
    else:
        return value
    for line in lines:
        if "\n" in line:
            fail("%s of %s must be of one line: %r" % (kind, name, line))
    target = "_%s_%s" % (name, kind)
    text_file(name = target, out = "_%s.%s.txt" % (name, kind), lines = lines, **common)
    return target

def oci_image(
        name,
        labels = None,
        annotations = None,
        env = None,
        cmd = None,
        entrypoint = None,
        exposed_ports = None,
        volumes = None,
        **kwargs):
    """Builds a container image, and NAME.digest, a file with its hash.

    Args:
      name: the image's name.
      labels: of the image, a dictionary or a file.
      annotations: of its manifest, a dictionary or a file.
      env: variables, a dictionary or a file; $KEY in a value is the base's.
      cmd: what follows the entrypoint, a list or a file.
      entrypoint: the program and its arguments, a list or a file.
      exposed_ports: a list or a file.
      volumes: absolute paths, a list or a file.
      **kwargs: oci_image_rule's other attributes.
    """
    common = _common(kwargs)
    oci_image_rule(
        name = name,
        annotations = _file(name, "annotations", annotations, common),
        cmd = _file(name, "cmd", cmd, common),
        entrypoint = _file(name, "entrypoint", entrypoint, common),
        env = _file(name, "env", env, common),
        exposed_ports = _file(name, "exposed_ports", exposed_ports, common),
        labels = _file(name, "labels", labels, common),
        volumes = _file(name, "volumes", volumes, common),
        **kwargs
    )
    digest_file(name = name + ".digest", image = name, out = name + ".json.sha256", **common)

def oci_push(name, remote_tags = None, **kwargs):
    """Pushes an image or an index: bazel run NAME -- [-r REPOSITORY] [-t TAG]...

    Args:
      name: the target's name.
      remote_tags: a list or a file.
      **kwargs: oci_push_rule's other attributes.
    """
    oci_push_rule(
        name = name,
        remote_tags = _file(name, "tags", remote_tags, _common(kwargs)),
        **kwargs
    )

def oci_load(name, repo_tags = None, **kwargs):
    """Loads an image into docker or podman: bazel run NAME.

    Args:
      name: the target's name.
      repo_tags: names with tags, a list or a file.
      **kwargs: the rule's other attributes.
    """
    _oci_load(
        name = name,
        repo_tags = _file(name, "tags", repo_tags, _common(kwargs)),
        **kwargs
    )
