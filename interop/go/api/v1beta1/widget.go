// Package v1beta1 has an older version of Widget, in which the size is a text with a unit.
package v1beta1

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/scheme"

	v1 "capstan.dev/interop/api/v1"
)

var (
	GroupVersion  = schema.GroupVersion{Group: "shop.example.com", Version: "v1beta1"}
	schemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}
	AddToScheme   = schemeBuilder.AddToScheme
)

func init() { schemeBuilder.Register(&Widget{}, &WidgetList{}) }

type WidgetSpec struct {
	// Length is the size with its unit, such as 3cm.
	Length string `json:"length,omitempty"`
	Colour string `json:"colour,omitempty"`
}

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WidgetSpec `json:"spec,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

func (in *Widget) ConvertTo(to conversion.Hub) error {
	out := to.(*v1.Widget)
	out.ObjectMeta = in.ObjectMeta
	out.Spec.Colour = in.Spec.Colour
	if in.Spec.Length == "" {
		return nil
	}
	size, err := strconv.ParseInt(strings.TrimSuffix(in.Spec.Length, "cm"), 10, 32)
	if err != nil {
		return fmt.Errorf("length %q is not a number of cm", in.Spec.Length)
	}
	out.Spec.Size = int32(size)
	return nil
}

func (in *Widget) ConvertFrom(from conversion.Hub) error {
	hub := from.(*v1.Widget)
	in.ObjectMeta = hub.ObjectMeta
	in.Spec.Colour = hub.Spec.Colour
	if hub.Spec.Size != 0 {
		in.Spec.Length = fmt.Sprintf("%dcm", hub.Spec.Size)
	}
	return nil
}

func (in *Widget) DeepCopyObject() runtime.Object {
	out := *in
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	return &out
}

func (in *WidgetList) DeepCopyObject() runtime.Object {
	out := *in
	out.Items = make([]Widget, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*Widget)
	}
	return &out
}
