package main

import (
	"bufio"
	"encoding/json"
	"io"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

type patchQuestion struct {
	Document json.RawMessage `json:"document"`
	Type     string          `json:"type"`
	Patch    string          `json:"patch"`
}

type patchAnswer struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
}

// patchAll applies patches with the library and the options that upstream's core uses.
func patchAll(in io.Reader, out io.Writer) error {
	questions := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	lines := bufio.NewWriterSize(out, 1<<20)
	answers := json.NewEncoder(lines)
	for {
		var one patchQuestion
		if err := questions.Decode(&one); err == io.EOF {
			return lines.Flush()
		} else if err != nil {
			return err
		}
		result := patchAnswer{}
		if value, err := patched(one); err != nil {
			result.Error = err.Error()
		} else {
			result.Value = value
		}
		if err := answers.Encode(result); err != nil {
			return err
		}
	}
}

func patched(one patchQuestion) ([]byte, error) {
	if one.Type == "JSONMergePatch" {
		return jsonpatch.MergePatch(one.Document, []byte(one.Patch))
	}
	operations, err := jsonpatch.DecodePatch([]byte(one.Patch))
	if err != nil {
		return nil, err
	}
	return operations.Apply(one.Document)
}
