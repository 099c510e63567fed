package importer

import (
	"path"
)

// code reads a mount of the training container as code beside its image: of an OCI image, or of what git-sync fetched
// once. Anything else of either stays in podTemplate, or is a volume like others.
func (d *draft) code(pod, m, volume view) bool {
	if !m.at("readOnly").isTrue() || d.get("spec.code").isSet() || m.at("subPathExpr").isSet() {
		return false
	}
	set := func(field, value string, from view) { d.set("spec.code."+field, value, from) }
	if image := volume.at("image", "reference"); image.isSet() && !m.at("subPath").isSet() && d.carries("code.image") {
		set("mountPath", m.at("mountPath").text(), m)
		set("image", image.text(), image)
		d.volume[volume.at("name").text()] = "code"
		return true
	}
	c := pod.at("initContainers").item("name", "fetch-code")
	env := func(name string) view { return c.at("env").item("name", name).at("value") }
	link := path.Join(env("GITSYNC_ROOT").text(), env("GITSYNC_LINK").text())
	at := c.at("volumeMounts").item("name", m.at("name").text()).at("mountPath").text()
	if at == "" || env("GITSYNC_ONE_TIME").text() != "true" || link != path.Join(at, m.at("subPath").text()) {
		return false
	}
	set("mountPath", m.at("mountPath").text(), m)
	repository := env("GITSYNC_REPO")
	set("git.repository", unescaped(repository.text()), repository)
	set("git.ref", env("GITSYNC_REF").text(), env("GITSYNC_REF"))
	set("git.size", volume.at("emptyDir", "sizeLimit").text(), volume.at("emptyDir", "sizeLimit"))
	secret := pod.at("volumes").item("name", "code-key").at("secret", "secretName")
	set("git.secret", secret.text(), secret)
	d.set("spec.images.git", c.at("image").text(), c.at("image"))
	d.volume[volume.at("name").text()] = "code"
	return true
}
