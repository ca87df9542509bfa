package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/cluster-api/api/runtime/catalog"

	// Generated from upstream's types by openapi-gen, before this program is compiled (`generate` in components.ts).
	"capstan.dev/tools/hooks-peer/definitions"
)

type object map[string]any

// writeOpenAPI writes a document with a path for each hook and all schemas that the paths refer to.
func writeOpenAPI(known *catalog.Catalog, out io.Writer) error {
	refer := func(name string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + componentName(name)) }
	defined := definitions.GetOpenAPIDefinitions(refer)
	schemas := map[string]spec.Schema{}
	paths := object{}
	for hook, descriptor := range known.AllKnownHooks() {
		meta := descriptor.Metadata
		operation := object{"tags": meta.Tags, "deprecated": meta.Deprecated}
		handler := ""
		if !meta.Singleton {
			handler = "{name}"
			operation["parameters"] = []object{{"name": "name", "in": "path", "required": true, "schema": object{"type": "string"}}}
		}
		request, err := known.Request(hook)
		if err != nil {
			return err
		}
		response, err := known.Response(hook)
		if err != nil {
			return err
		}
		content := func(kind schema.GroupVersionKind) (object, error) {
			name := known.AllKnownTypes()[kind].PkgPath() + "." + kind.Kind
			if err := addSchema(defined, name, schemas); err != nil {
				return nil, err
			}
			return object{"content": object{"application/json": object{"schema": spec.RefSchema("#/components/schemas/" + componentName(name))}}}, nil
		}
		if operation["requestBody"], err = content(request); err != nil {
			return err
		}
		responseContent, err := content(response)
		if err != nil {
			return err
		}
		operation["responses"] = object{"200": responseContent}
		paths[catalog.GVHToPath(hook, handler)] = object{"post": operation}
	}
	return json.NewEncoder(out).Encode(object{"openapi": "3.0.0", "paths": paths, "components": object{"schemas": schemas}})
}

// addSchema adds the schema of a type, and those to which it refers, directly or indirectly, to schemas.
func addSchema(defined map[string]common.OpenAPIDefinition, name string, schemas map[string]spec.Schema) error {
	if _, added := schemas[componentName(name)]; added {
		return nil
	}
	definition, found := defined[name]
	if !found {
		return fmt.Errorf("there is no definition of %s", name)
	}
	schemas[componentName(name)] = definition.Schema
	for _, dependency := range definition.Dependencies {
		if err := addSchema(defined, dependency, schemas); err != nil {
			return err
		}
	}
	return nil
}

func componentName(name string) string { return strings.ReplaceAll(name, "/", ".") }
