package modules

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// opaque is what all values of this package that Starlark files pass around
// have in common.
type opaque string

func (o opaque) String() string     { return "<" + string(o) + ">" }
func (o opaque) Type() string       { return string(o) }
func (opaque) Freeze()              {}
func (opaque) Truth() starlark.Bool { return true }
func (o opaque) Hash() (uint32, error) {
	return 0, fmt.Errorf("unhashable: %s", o.Type())
}

// attribute is an attribute of a rule or a tag.
type attribute struct {
	opaque
	mandatory bool
	// fallback is its value when none is given.
	fallback starlark.Value
}

// newAttribute is what attr.string and the like do.
func newAttribute(_ *starlark.Thread, b *starlark.Builtin, _ starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := &attribute{opaque: "attribute", fallback: starlark.None}
	switch b.Name() {
	case "string":
		a.fallback = starlark.String("")
	case "string_list", "label_list":
		a.fallback = starlark.NewList(nil)
	}
	for _, pair := range kwargs {
		switch string(pair[0].(starlark.String)) {
		case "mandatory":
			a.mandatory = bool(pair[1].Truth())
		case "default":
			a.fallback = pair[1]
		}
	}
	return a, nil
}

// attributes reads a dictionary of attributes.
func attributes(dictionary *starlark.Dict) (map[string]*attribute, error) {
	read := map[string]*attribute{}
	if dictionary == nil {
		return read, nil
	}
	for _, item := range dictionary.Items() {
		name, ok := starlark.AsString(item[0])
		a, isAttribute := item[1].(*attribute)
		if !ok || !isAttribute {
			return nil, fmt.Errorf("%s: %s is no attribute", item[0], item[1])
		}
		read[name] = a
	}
	return read, nil
}

// given checks the arguments of a call against the attributes, and returns a
// value for each of those.
func given(what string, of map[string]*attribute, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.StringDict, error) {
	if len(args) > 0 {
		return nil, fmt.Errorf("%s takes named arguments only", what)
	}
	values := starlark.StringDict{}
	for _, pair := range kwargs {
		name := string(pair[0].(starlark.String))
		if of[name] == nil {
			return nil, fmt.Errorf("%s has no attribute %s", what, name)
		}
		values[name] = pair[1]
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if _, ok := values[name]; ok {
			continue
		}
		if of[name].mandatory {
			return nil, fmt.Errorf("%s needs the attribute %s", what, name)
		}
		values[name] = of[name].fallback
	}
	return values, nil
}

// repositoryRule is a rule that only records what it is called with.
type repositoryRule struct {
	opaque
	name       string
	attributes map[string]*attribute
	record     func(rule string, values starlark.StringDict) error
}

// newRule is what repository_rule does.
func (e *evaluation) newRule(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var implementation starlark.Callable
	var dictionary *starlark.Dict
	var doc string
	// What a rule depends on besides its attributes is the same in both builds.
	var environ *starlark.List
	var local bool
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "implementation", &implementation, "attrs?", &dictionary, "doc?", &doc, "environ?", &environ, "local?", &local); err != nil {
		return nil, err
	}
	of, err := attributes(dictionary)
	if err != nil {
		return nil, err
	}
	of["name"] = &attribute{opaque: "attribute", mandatory: true}
	return &repositoryRule{opaque: "repository_rule", attributes: of, record: e.record}, nil
}

// Name makes a rule something to be called.
func (r *repositoryRule) Name() string { return r.name }

// CallInternal is a call of the rule.
func (r *repositoryRule) CallInternal(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	values, err := given(r.name, r.attributes, args, kwargs)
	if err != nil {
		return nil, err
	}
	return starlark.None, r.record(r.name, values)
}

// record records a repository.
func (e *evaluation) record(rule string, values starlark.StringDict) error {
	name, ok := starlark.AsString(values["name"])
	if _, twice := e.declared[name]; !ok || twice {
		return fmt.Errorf("the repository %s has no name or is there twice", values["name"])
	}
	printed := map[string]string{}
	for attribute, value := range values {
		printed[attribute] = value.String()
	}
	e.declared[name] = declaration{rule, printed}
	return nil
}

// tagClass is the kind of a tag.
type tagClass struct {
	opaque
	attributes map[string]*attribute
}

// newTagClass is what tag_class does.
func newTagClass(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var dictionary *starlark.Dict
	var doc string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "attrs?", &dictionary, "doc?", &doc); err != nil {
		return nil, err
	}
	of, err := attributes(dictionary)
	return &tagClass{"tag_class", of}, err
}

// extension is a module extension.
type extension struct {
	opaque
	implementation starlark.Callable
	classes        map[string]*tagClass
}

// newExtension is what module_extension does.
func newExtension(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	made := &extension{opaque: "module_extension", classes: map[string]*tagClass{}}
	var dictionary *starlark.Dict
	var doc string
	err := starlark.UnpackArgs(b.Name(), args, kwargs, "implementation", &made.implementation, "tag_classes?", &dictionary, "doc?", &doc)
	if err != nil {
		return nil, err
	}
	for _, item := range dictionary.Items() {
		name, ok := starlark.AsString(item[0])
		class, isClass := item[1].(*tagClass)
		if !ok || !isClass {
			return nil, fmt.Errorf("%s: %s is no tag class", item[0], item[1])
		}
		made.classes[name] = class
	}
	return made, nil
}

// extensionUse is what use_extension returns: its methods add tags.
type extensionUse struct {
	opaque
	// file is empty for an extension of another module.
	file, name   string
	tags         map[string][]starlark.StringDict
	repositories []string
}

// useExtension is what use_extension does.
func (e *evaluation) useExtension(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var label string
	use := &extensionUse{opaque: "extension", tags: map[string][]starlark.StringDict{}}
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "label", &label, "name", &use.name); err != nil {
		return nil, err
	}
	use.file, _ = e.path(thread.Name, label)
	e.uses = append(e.uses, use)
	return use, nil
}

// Attr is a method of an extension, which adds a tag of that class.
func (u *extensionUse) Attr(class string) (starlark.Value, error) {
	return starlark.NewBuiltin(class, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if len(args) > 0 {
			return nil, errors.New("a tag takes named arguments only")
		}
		values := starlark.StringDict{}
		for _, pair := range kwargs {
			values[string(pair[0].(starlark.String))] = pair[1]
		}
		u.tags[class] = append(u.tags[class], values)
		return starlark.None, nil
	}), nil
}

// AttrNames is empty: which tags there are only the extension knows.
func (*extensionUse) AttrNames() []string { return nil }

// useRepo is what use_repo does.
func useRepo(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 || len(kwargs) > 0 {
		return nil, errors.New("use_repo takes an extension and names")
	}
	use, ok := args[0].(*extensionUse)
	if !ok {
		return nil, fmt.Errorf("use_repo takes an extension, not %s", args[0])
	}
	for _, argument := range args[1:] {
		name, ok := starlark.AsString(argument)
		if !ok {
			return nil, fmt.Errorf("use_repo takes names, not %s", argument)
		}
		use.repositories = append(use.repositories, name)
	}
	return starlark.None, nil
}

// extend runs an extension of this tree on its tags.
func (e *evaluation) extend(use *extensionUse) error {
	if use.file == "" {
		return nil
	}
	thread := &starlark.Thread{Name: moduleFile, Load: e.load}
	globals, err := e.load(thread, "//"+use.file)
	if err != nil {
		return err
	}
	run, ok := globals[use.name].(*extension)
	if !ok {
		return errors.New("there is no such extension")
	}
	tags := starlark.StringDict{}
	for class := range use.tags {
		if run.classes[class] == nil {
			return fmt.Errorf("it has no tag %s", class)
		}
	}
	for name, class := range run.classes {
		var all []starlark.Value
		for _, tag := range use.tags[name] {
			var kwargs []starlark.Tuple
			for attribute, value := range tag {
				kwargs = append(kwargs, starlark.Tuple{starlark.String(attribute), value})
			}
			values, err := given("the tag "+name, class.attributes, nil, kwargs)
			if err != nil {
				return err
			}
			all = append(all, starlarkstruct.FromStringDict(starlarkstruct.Default, values))
		}
		tags[name] = starlark.NewList(all)
	}
	module := starlarkstruct.FromStringDict(starlarkstruct.Default, starlark.StringDict{
		"is_root": starlark.True, "tags": starlarkstruct.FromStringDict(starlarkstruct.Default, tags),
	})
	context := starlarkstruct.FromStringDict(starlarkstruct.Default, starlark.StringDict{
		"modules": starlark.NewList([]starlark.Value{module}), "extension_metadata": nothing("extension_metadata"),
	})
	_, err = starlark.Call(thread, run.implementation, starlark.Tuple{context}, nil)
	return err
}
