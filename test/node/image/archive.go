package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
)

// Media types of the OCI image specification. Layers are not compressed: nothing carries them further than this machine.
const (
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

const blobs = "blobs/sha256/"

// headerSize is that of one entry of a tar file with a short name.
const headerSize = 512

// The parts of an archive, as the OCI image specification spells them.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int64             `json:"size"`
		Platform    *platform         `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	manifest struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
	}
	index struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}
	// config is how a container of the image starts.
	config struct {
		User       string   `json:"User,omitempty"`
		Env        []string `json:"Env,omitempty"`
		Entrypoint []string `json:"Entrypoint,omitempty"`
		WorkingDir string   `json:"WorkingDir,omitempty"`
	}
)

// encode is the configuration blob of an image with these layers.
func (c config) encode(layers []descriptor) ([]byte, error) {
	type rootfs struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	blob := struct {
		platform
		Config config `json:"config"`
		RootFS rootfs `json:"rootfs"`
	}{platform: thisPlatform(), Config: c, RootFS: rootfs{Type: "layers", DiffIDs: []string{}}}
	for _, l := range layers {
		// The digest of what is not compressed is that of the blob.
		blob.RootFS.DiffIDs = append(blob.RootFS.DiffIDs, l.Digest)
	}
	return json.Marshal(blob)
}

func thisPlatform() platform { return platform{Architecture: runtime.GOARCH, OS: "linux"} }

// archiveWriter writes an archive to a file, layer by layer. Readers find blobs by name, so that their order is free.
type archiveWriter struct {
	file   *os.File
	layers []descriptor
}

// addLayer streams a layer. Its digest, and so its name, is known only after it: the header in front of it is written
// last.
func (w *archiveWriter) addLayer(ctx context.Context, entries []entry) error {
	start, err := w.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := w.file.Write(make([]byte, headerSize)); err != nil {
		return err
	}
	hash := sha256.New()
	buffer := bufio.NewWriterSize(io.MultiWriter(w.file, hash), 1<<20)
	if err := writeLayer(ctx, buffer, entries); err != nil {
		return err
	}
	if err := buffer.Flush(); err != nil {
		return err
	}
	end, err := w.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	layer := descriptor{
		MediaType: layerType, Digest: "sha256:" + hex.EncodeToString(hash.Sum(nil)), Size: end - start - headerSize,
	}
	return w.nameLayer(start, layer)
}

// copyFirstLayer takes the first layer of another archive of this package.
func (w *archiveWriter) copyFirstLayer(from string) (err error) {
	old, err := os.Open(from)
	if err != nil {
		return err
	}
	defer old.Close() //nolint:errcheck // it is read only
	header, err := tar.NewReader(old).Next()
	if err != nil {
		return fmt.Errorf("reading %s: %w", from, err)
	}
	layer := descriptor{MediaType: layerType, Digest: "sha256:" + path.Base(header.Name), Size: header.Size}
	if _, err := old.Seek(headerSize, io.SeekStart); err != nil {
		return fmt.Errorf("reading %s: %w", from, err)
	}
	if _, err := w.file.Write(make([]byte, headerSize)); err != nil {
		return err
	}
	if _, err := io.CopyN(w.file, old, layer.Size); err != nil {
		return fmt.Errorf("copying a layer of %s: %w", from, err)
	}
	return w.nameLayer(0, layer)
}

// nameLayer writes the header of the layer that ends here. A tar file's size is a multiple of the padding.
func (w *archiveWriter) nameLayer(start int64, layer descriptor) error {
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(blobHeader(blobName(layer.Digest), layer.Size)); err != nil {
		return err
	}
	if header.Len() != headerSize {
		return fmt.Errorf("writing the header of a layer of %d bytes: it takes %d bytes instead of %d", layer.Size, header.Len(), headerSize)
	}
	w.layers = append(w.layers, layer)
	_, err := w.file.WriteAt(header.Bytes(), start)
	return err
}

func blobName(digest string) string { return blobs + strings.TrimPrefix(digest, "sha256:") }

func blobHeader(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}
}

// finish writes what describes the layers, and the archive's end.
func (w *archiveWriter) finish(c config, reference string) error {
	configBlob, err := c.encode(w.layers)
	if err != nil {
		return err
	}
	manifestBlob, err := json.Marshal(manifest{
		SchemaVersion: 2, MediaType: manifestType, Config: describe(configType, configBlob), Layers: w.layers,
	})
	if err != nil {
		return err
	}
	described, here := describe(manifestType, manifestBlob), thisPlatform()
	described.Platform = &here
	described.Annotations = map[string]string{
		"io.containerd.image.name":          reference, // read by ctr
		"org.opencontainers.image.ref.name": reference[strings.LastIndex(reference, ":")+1:],
	}
	indexBlob, err := json.Marshal(index{SchemaVersion: 2, MediaType: indexType, Manifests: []descriptor{described}})
	if err != nil {
		return err
	}
	rest := tar.NewWriter(w.file)
	for _, blob := range []struct {
		name string
		data []byte
	}{
		{blobName(describe(configType, configBlob).Digest), configBlob},
		{blobName(described.Digest), manifestBlob},
		{"index.json", indexBlob},
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
	} {
		if err := rest.WriteHeader(blobHeader(blob.name, int64(len(blob.data)))); err != nil {
			return err
		}
		if _, err := rest.Write(blob.data); err != nil {
			return err
		}
	}
	return rest.Close()
}

func describe(mediaType string, data []byte) descriptor {
	sum := sha256.Sum256(data)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data))}
}
