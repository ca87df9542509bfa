package interop

import (
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

func ptr[T any](value T) *T { return &value }

// encodings returns a configuration for a client that sends JSON, and one for a client that sends protobuf.
func encodings() map[string]*rest.Config {
	return map[string]*rest.Config{
		"json":     configFor(func(c *rest.Config) { c.ContentType = "application/json" }),
		"protobuf": configFor(func(c *rest.Config) { c.ContentType = "application/vnd.kubernetes.protobuf" }),
	}
}

// schemaOfEveryShape returns a schema that uses the Go types whose structure differs between protobuf and JSON: JSON, JSONSchemaPropsOrArray
// and JSONSchemaPropsOrBool. JSONSchemaPropsOrStringArray is not used, because only the field dependencies has it, which a CRD must not set.
func schemaOfEveryShape() *apiextensionsv1.JSONSchemaProps {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return &apiextensionsv1.JSONSchemaProps{
		Type:        "object",
		Description: "everything",
		Required:    []string{"spec"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {
				Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"color":  {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"red"`)}, Enum: []apiextensionsv1.JSON{{Raw: []byte(`"red"`)}, {Raw: []byte(`"blue"`)}}},
					"size":   {Type: "integer", Format: "int64", Minimum: ptr(0.0), Maximum: ptr(1e6), MultipleOf: ptr(0.5)},
					"list":   {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}, MaxItems: ptr(int64(10)), XListType: ptr("set")},
					"labels": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &text}},
					"free":   {Type: "object", XPreserveUnknownFields: ptr(true), Nullable: true},
					"port":   {XIntOrString: true, AnyOf: []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}},
				},
				XValidations: apiextensionsv1.ValidationRules{{
					Rule:   "!has(self.size) || self.size != 13",
					Reason: ptr(apiextensionsv1.FieldValueForbidden), FieldPath: ".size",
				}},
			},
			"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"ready": {Type: "boolean"}}},
		},
	}
}

func TestCRDsAreAcceptedAsProtobuf(t *testing.T) {
	specs := map[string]apiextensionsv1.CustomResourceDefinitionSpec{}
	for encoding, config := range encodings() {
		client, err := apiextensions.NewForConfig(config)
		must(t, err)
		definitions := client.ApiextensionsV1().CustomResourceDefinitions()
		group := encoding + ".protobuf.example.com"
		created, err := definitions.Create(background, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "shapes." + group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: group,
				Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "shapes", Kind: "Shape", ShortNames: []string{"sh"}},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Schema:                   &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schemaOfEveryShape()},
					Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
					AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Color", Type: "string", JSONPath: ".spec.color"}},
					SelectableFields:         []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}},
				}},
			},
		}, metav1.CreateOptions{})
		must(t, err)
		var updated *apiextensionsv1.CustomResourceDefinition
		// The server writes the status several times in the meantime, so an update may conflict.
		must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			current, err := definitions.Get(background, created.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			current.Labels = map[string]string{"updated": "yes"}
			updated, err = definitions.Update(background, current, metav1.UpdateOptions{})
			return err
		}))
		if updated.Labels["updated"] != "yes" {
			t.Errorf("%s: labels are %v", encoding, updated.Labels)
		}
		updated.Spec.Group = ""
		specs[encoding] = updated.Spec
		must(t, definitions.Delete(background, created.Name, metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletePropagationForeground)}))
	}
	if !reflect.DeepEqual(specs["json"], specs["protobuf"]) {
		t.Errorf("as JSON %+v, as protobuf %+v", specs["json"], specs["protobuf"])
	}
}

func TestAdmissionConfigurationsAreAcceptedAsProtobuf(t *testing.T) {
	specs := map[string][]any{}
	for encoding, config := range encodings() {
		client, err := kubernetes.NewForConfig(config)
		must(t, err)
		admission := client.AdmissionregistrationV1()
		rules := []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule: admissionv1.Rule{
				APIGroups: []string{"none.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"nones"}, Scope: ptr(admissionv1.AllScopes),
			},
		}}
		meta := metav1.ObjectMeta{Name: encoding + "-encoded"}
		hook, err := admission.ValidatingWebhookConfigurations().Create(background, &admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: meta,
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "a.example.com", Rules: rules, SideEffects: ptr(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionv1.WebhookClientConfig{URL: ptr("https://127.0.0.1:1/a")}, FailurePolicy: ptr(admissionv1.Ignore),
				MatchConditions: []admissionv1.MatchCondition{{Name: "never", Expression: "false"}},
			}},
		}, metav1.CreateOptions{})
		must(t, err)
		policy, err := admission.ValidatingAdmissionPolicies().Create(background, &admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: meta,
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rules[0]}}},
				Validations:      []admissionv1.Validation{{Expression: "true", Message: "never"}},
				Variables:        []admissionv1.Variable{{Name: "a", Expression: "1"}},
			},
		}, metav1.CreateOptions{})
		must(t, err)
		binding, err := admission.ValidatingAdmissionPolicyBindings().Create(background, &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "none", ValidationActions: []admissionv1.ValidationAction{admissionv1.Warn},
			},
		}, metav1.CreateOptions{})
		must(t, err)
		specs[encoding] = []any{hook.Webhooks, policy.Spec, binding.Spec}
		must(t, admission.ValidatingWebhookConfigurations().Delete(background, meta.Name, metav1.DeleteOptions{}))
		must(t, admission.ValidatingAdmissionPolicies().Delete(background, meta.Name, metav1.DeleteOptions{}))
		must(t, admission.ValidatingAdmissionPolicyBindings().Delete(background, meta.Name, metav1.DeleteOptions{}))
	}
	if !reflect.DeepEqual(specs["json"], specs["protobuf"]) {
		t.Errorf("as JSON %+v, as protobuf %+v", specs["json"], specs["protobuf"])
	}
}
