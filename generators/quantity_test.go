package generators_test

import "k8s.io/apimachinery/pkg/api/resource"

func resourceOf(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }
