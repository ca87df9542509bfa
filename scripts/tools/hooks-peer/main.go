// Uses upstream's types and libraries, for comparison with Capstan: decodes responses of hooks, writes the OpenAPI document of all hooks,
// and applies patches.
//
//	hooks-peer decode     each line of the input is {"hook", "body"}, with the body in base64; each line of the output is {"value"} or
//	                      {"error"}
//	hooks-peer openapi    writes an OpenAPI document of the whole catalog
//	hooks-peer patch      each line of the input is {"document", "type", "patch"}, with the patch as text; the output is as for decode
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooks "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

func main() {
	known := catalog.New()
	err := hooks.AddToCatalog(known)
	if err == nil {
		command := ""
		if len(os.Args) > 1 {
			command = os.Args[1]
		}
		switch command {
		case "decode":
			err = decodeAll(known, os.Stdin, os.Stdout)
		case "openapi":
			err = writeOpenAPI(known, os.Stdout)
		case "patch":
			err = patchAll(os.Stdin, os.Stdout)
		default:
			err = fmt.Errorf("unknown command %q: expected decode, openapi or patch", command)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type decodeRequest struct {
	Hook string `json:"hook"`
	Body []byte `json:"body"`
}

type decodeResult struct {
	Value any    `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
}

func decodeAll(known *catalog.Catalog, in io.Reader, out io.Writer) error {
	requests := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	lines := bufio.NewWriterSize(out, 1<<20)
	results := json.NewEncoder(lines)
	for {
		var request decodeRequest
		if err := requests.Decode(&request); err == io.EOF {
			return lines.Flush()
		} else if err != nil {
			return err
		}
		hook := catalog.GroupVersionHook{Group: hooks.GroupVersion.Group, Version: hooks.GroupVersion.Version, Hook: request.Hook}
		response, err := known.NewResponse(hook)
		if err != nil {
			return err
		}
		// Upstream's client decodes the response of a handler in the same way.
		result := decodeResult{Value: response}
		if err := json.NewDecoder(bytes.NewReader(request.Body)).Decode(response); err != nil {
			result = decodeResult{Error: err.Error()}
		}
		if err := results.Encode(result); err != nil {
			return err
		}
	}
}
