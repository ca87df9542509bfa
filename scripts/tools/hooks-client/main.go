// Calls handlers of the hook BeforeClusterCreate on an extension server with upstream's own runtime client, and measures series of calls.
//
// Each line of the input is a command, a JSON object. The program writes one JSON object for each command, {"error"} after a failure:
//
//	{"url", "caBundle", "handler", "request"}    sets the server, the handler and the request of the following calls, and makes the first
//	                                             call; the output is {}
//	{"calls", "inFlight"}                        makes this number of calls, of which at most inFlight are concurrent; the output is
//	                                             {"seconds", "latencies"}: the total time in seconds, and the time of each call in
//	                                             microseconds
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooks "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
	internalclient "sigs.k8s.io/cluster-api/internal/runtime/client"
	"sigs.k8s.io/cluster-api/internal/runtime/registry"

	"github.com/go-logr/logr"
)

const extension = "bench"

type command struct {
	URL      string          `json:"url"`
	CABundle []byte          `json:"caBundle"`
	Handler  string          `json:"handler"`
	Request  json.RawMessage `json:"request"`

	Calls    int `json:"calls"`
	InFlight int `json:"inFlight"`
}

type output struct {
	Seconds   float64 `json:"seconds,omitempty"`
	Latencies []int64 `json:"latencies,omitempty"`
	Error     string  `json:"error,omitempty"`
}

func main() {
	ctrl.SetLogger(logr.Discard())
	commands := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	outputs := json.NewEncoder(os.Stdout)
	var current *caller
	for {
		var next command
		if commands.Decode(&next) != nil {
			return
		}
		result, err := output{}, error(nil)
		if next.URL != "" {
			if current, err = newCaller(next); err == nil {
				err = current.call()
			}
		} else {
			result, err = current.callMany(next.Calls, next.InFlight)
		}
		if err != nil {
			result = output{Error: err.Error()}
		}
		if err := outputs.Encode(result); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// caller calls one handler of BeforeClusterCreate, which is registered in client, always with the same request and Cluster.
type caller struct {
	client  runtimeclient.Client
	handler string
	request *hooks.BeforeClusterCreateRequest
	cluster client.Object
}

func newCaller(to command) (*caller, error) {
	request := &hooks.BeforeClusterCreateRequest{}
	if err := json.Unmarshal(to.Request, request); err != nil {
		return nil, err
	}
	known := catalog.New()
	if err := hooks.AddToCatalog(known); err != nil {
		return nil, err
	}
	runtime, _, err := internalclient.New(context.Background(), internalclient.Options{Catalog: known, Registry: registry.New()})
	if err != nil {
		return nil, err
	}
	name := to.Handler + "." + extension
	err = runtime.WarmUp(&runtimev1.ExtensionConfigList{Items: []runtimev1.ExtensionConfig{{
		ObjectMeta: metav1.ObjectMeta{Name: extension},
		Spec: runtimev1.ExtensionConfigSpec{
			ClientConfig:      runtimev1.ClientConfig{URL: to.URL, CABundle: to.CABundle},
			NamespaceSelector: &metav1.LabelSelector{},
		},
		Status: runtimev1.ExtensionConfigStatus{Handlers: []runtimev1.ExtensionHandler{{
			Name:           name,
			RequestHook:    runtimev1.GroupVersionHook{APIVersion: hooks.GroupVersion.String(), Hook: "BeforeClusterCreate"},
			TimeoutSeconds: 10,
			FailurePolicy:  runtimev1.FailurePolicyFail,
		}}},
	}}})
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: request.Cluster.Namespace, Name: request.Cluster.Name}}
	return &caller{client: runtime, handler: name, request: request, cluster: cluster}, err
}

func (c *caller) call() error {
	response := &hooks.BeforeClusterCreateResponse{}
	return c.client.CallExtension(context.Background(), hooks.BeforeClusterCreate, c.cluster, c.handler, c.request, response)
}

func (c *caller) callMany(calls, inFlight int) (output, error) {
	latencies := make([]int64, calls)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var working sync.WaitGroup
	began := time.Now()
	for range min(inFlight, calls) {
		working.Go(func() {
			for at := next.Add(1) - 1; at < int64(calls); at = next.Add(1) - 1 {
				start := time.Now()
				if err := c.call(); err != nil {
					failed.Store(&err)
					return
				}
				latencies[at] = time.Since(start).Microseconds()
			}
		})
	}
	working.Wait()
	if err := failed.Load(); err != nil {
		return output{}, *err
	}
	return output{Seconds: time.Since(began).Seconds(), Latencies: latencies}, nil
}
