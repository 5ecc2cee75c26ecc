// Package image builds container images from layers and from what a BUILD file
// says of them. The same inputs give the same bytes: nothing is taken from the
// clock or from the machine.
package image

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// createdBy is what the history says of every layer.
const createdBy = "bazel build"

// Config is what an image says of itself. What is empty stays as in the base.
type Config struct {
	// OS, Architecture and Variant are those of an image without a base, in
	// Go's terms. They must be empty with one.
	OS, Architecture, Variant string
	// Created is the time that the image states; an image without a base states
	// the beginning of 1970.
	Created time.Time
	// Entrypoint and Cmd replace the base's when they aren't nil.
	Entrypoint, Cmd []string
	// Env is added to the base's variables. $KEY and ${KEY} in a value stand
	// for the base's value, or that of an earlier pair.
	Env []Pair
	// User is a user and maybe a group, by name or number.
	User string
	// WorkingDir is absolute.
	WorkingDir string
	// ExposedPorts are numbers, each maybe with "/tcp", "/udp" or "/sctp".
	ExposedPorts []string
	// Volumes are absolute paths.
	Volumes []string
	// Labels are in the image's configuration, Annotations in its manifest.
	Labels, Annotations []Pair
}

// Build puts the layers, in this order, upon the base, which may be nil.
func Build(base v1.Image, config Config, layers []Layer) (v1.Image, error) {
	built, err := start(base, config)
	if err != nil {
		return nil, err
	}
	file, err := built.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the base's configuration: %w", err)
	}
	created := file.Created
	if !config.Created.IsZero() {
		created = v1.Time{Time: config.Created.UTC()}
	}
	kind, err := built.MediaType()
	if err != nil {
		return nil, fmt.Errorf("read the base's kind: %w", err)
	}
	for _, layer := range layers {
		layerKind, err := layer.kind(kind)
		if err != nil {
			return nil, err
		}
		built, err = mutate.Append(built, mutate.Addendum{
			Layer: layer.layer, MediaType: layerKind,
			History: v1.History{Created: created, CreatedBy: createdBy},
		})
		if err != nil {
			return nil, fmt.Errorf("add %s: %w", layer.name, err)
		}
	}
	file, err = built.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("make the image's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.Created = created
	if err := config.apply(&file.Config); err != nil {
		return nil, err
	}
	built, err = mutate.ConfigFile(built, file)
	if err != nil {
		return nil, fmt.Errorf("write the image's configuration: %w", err)
	}
	if len(config.Annotations) == 0 {
		return built, nil
	}
	annotated, ok := mutate.Annotations(built, pairMap(config.Annotations)).(v1.Image)
	if !ok {
		return nil, errors.New("annotate the image: the result is no image")
	}
	return annotated, nil
}

// start returns the image that layers are put upon.
func start(base v1.Image, config Config) (v1.Image, error) {
	if base != nil {
		if config.OS != "" || config.Architecture != "" || config.Variant != "" {
			return nil, errors.New("operating system and architecture come with the base and can't be given too")
		}
		return base, nil
	}
	if config.OS == "" || config.Architecture == "" {
		return nil, errors.New("an image without a base needs an operating system and an architecture")
	}
	scratch := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	scratch = mutate.ConfigMediaType(scratch, types.OCIConfigJSON)
	return mutate.ConfigFile(scratch, &v1.ConfigFile{
		OS: config.OS, Architecture: config.Architecture, Variant: config.Variant,
		Created: v1.Time{Time: time.Unix(0, 0).UTC()},
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
	})
}

// apply changes what the image says of how it is run.
func (c Config) apply(to *v1.Config) error {
	if c.Entrypoint != nil {
		to.Entrypoint = c.Entrypoint
	}
	if c.Cmd != nil {
		to.Cmd = c.Cmd
	}
	to.Env = slices.Clone(to.Env)
	for _, pair := range c.Env {
		value, err := expand(pair.Value, to.Env)
		if err != nil {
			return fmt.Errorf("the variable %s: %w", pair.Key, err)
		}
		to.Env = set(to.Env, pair.Key, value)
	}
	if c.User != "" {
		to.User = c.User
	}
	if c.WorkingDir != "" {
		if !path.IsAbs(c.WorkingDir) {
			return fmt.Errorf("the working directory %q isn't absolute", c.WorkingDir)
		}
		to.WorkingDir = c.WorkingDir
	}
	for _, exposed := range c.ExposedPorts {
		if !port.MatchString(exposed) {
			return fmt.Errorf("%q is no port: write 2000, 2000/tcp, 2000/udp or 2000/sctp", exposed)
		}
		to.ExposedPorts = put(to.ExposedPorts, exposed, struct{}{})
	}
	for _, volume := range c.Volumes {
		if !path.IsAbs(volume) {
			return fmt.Errorf("the volume %q isn't absolute", volume)
		}
		to.Volumes = put(to.Volumes, volume, struct{}{})
	}
	for _, label := range c.Labels {
		to.Labels = put(to.Labels, label.Key, label.Value)
	}
	return nil
}

// put sets a key of a map that may be nil.
func put[V any](in map[string]V, key string, value V) map[string]V {
	if in == nil {
		in = map[string]V{}
	}
	in[key] = value
	return in
}

func pairMap(pairs []Pair) map[string]string {
	out := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		out[pair.Key] = pair.Value
	}
	return out
}
