package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// field is a field of a struct: its name in JSON, its type, and `e` for the tag omitempty, `z` for omitzero. The type is `bool`, `int`,
// `string`, `bytes`, `time`, `duration`, `intOrString`, `json`, `metadata` or the name of a struct. `*T` is a pointer to a value of type T,
// `[]T` a list of such values, `{}T` a map with such values.
type field struct {
	name string
	typ  string
	omit string
}

// recorder records the structs that structOf reaches: their fields by name of the struct, and these names in the order of first use.
type recorder struct {
	structs map[string][]field
	order   []string
}

func (r *recorder) typeOf(t reflect.Type) string {
	switch t.String() {
	case "v1.Time", "v1.MicroTime":
		return "time"
	case "v1.Duration":
		return "duration"
	case "intstr.IntOrString":
		return "intOrString"
	case "v1.JSON":
		return "json"
	case "v1.ObjectMeta":
		if strings.HasPrefix(t.PkgPath(), "k8s.io/") {
			return "metadata"
		}
	}
	switch t.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "int"
	case reflect.String:
		return "string"
	case reflect.Pointer:
		return "*" + r.typeOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + r.typeOf(t.Elem())
	case reflect.Map:
		return "{}" + r.typeOf(t.Elem())
	case reflect.Struct:
		return r.structOf(t)
	default:
		panic("no name for " + t.String())
	}
}

func (r *recorder) structOf(t reflect.Type) string {
	// The name contains the last two folders of the package: core/v1beta1.Machine, core/v1beta2.Machine, meta/v1.Condition.
	path := strings.Split(t.PkgPath(), "/")
	name := strings.Join(path[max(0, len(path)-2):], "/") + "." + t.Name()
	if _, known := r.structs[name]; known {
		return name
	}
	r.structs[name] = nil
	r.order = append(r.order, name)
	r.structs[name] = r.fields(t)
	return name
}

func (r *recorder) fields(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if f.Anonymous && name == "" {
			fields = append(fields, r.fields(f.Type)...)
			continue
		}
		omit := ""
		for _, option := range strings.Split(options, ",") {
			switch option {
			case "omitempty":
				omit += "e"
			case "omitzero":
				omit += "z"
			}
		}
		fields = append(fields, field{name, r.typeOf(f.Type), omit})
	}
	return fields
}

// printTypes writes one line of JSON: the name of the struct of each kind in each version, and the fields of these structs and of all structs
// that the types of these fields name, directly or indirectly.
func printTypes(out *bufio.Writer) {
	r := recorder{structs: map[string][]field{}}
	roots := map[string]string{}
	for kind, spokes := range versions {
		for _, spoke := range spokes {
			group, _, _ := strings.Cut(spoke.apiVersion, "/")
			roots[spoke.apiVersion+" "+kind] = r.structOf(reflect.TypeOf(spoke.empty()).Elem())
			roots[hubs[group]+" "+kind] = r.structOf(reflect.TypeOf(spoke.hub()).Elem())
		}
	}
	structs := map[string][]string{}
	for _, name := range r.order {
		lines := []string{}
		for _, f := range r.structs[name] {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.name, f.typ, f.omit)))
		}
		structs[name] = lines
	}
	text, err := json.Marshal(map[string]any{"roots": roots, "structs": structs})
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(out, string(text))
}
