package main

import (
	"bufio"
	"encoding/json"
	"io"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

type patchRequest struct {
	Document json.RawMessage `json:"document"`
	Type     string          `json:"type"`
	Patch    string          `json:"patch"`
}

type patchResult struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
}

// patchAll reads requests from in, applies the patch of each, and writes the results to out. It calls the same functions of the library
// as upstream's core.
func patchAll(in io.Reader, out io.Writer) error {
	requests := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	lines := bufio.NewWriterSize(out, 1<<20)
	results := json.NewEncoder(lines)
	for {
		var request patchRequest
		if err := requests.Decode(&request); err == io.EOF {
			return lines.Flush()
		} else if err != nil {
			return err
		}
		result := patchResult{}
		if value, err := patched(request); err != nil {
			result.Error = err.Error()
		} else {
			result.Value = value
		}
		if err := results.Encode(result); err != nil {
			return err
		}
	}
}

// patched returns the document after the patch.
func patched(request patchRequest) ([]byte, error) {
	if request.Type == "JSONMergePatch" {
		return jsonpatch.MergePatch(request.Document, []byte(request.Patch))
	}
	operations, err := jsonpatch.DecodePatch([]byte(request.Patch))
	if err != nil {
		return nil, err
	}
	return operations.Apply(request.Document)
}
