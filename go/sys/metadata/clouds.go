package metadata

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
)

// AWS returns EC2's instance metadata service, of which version 2 alone is used: a
// PUT gets a token, which the GET shows. The answer with the token goes as many hops
// as the instance's options say, one as a rule, which is as far as the machine itself.
//
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
func AWS() Service {
	return Service{
		name: "AWS",
		// The second one answers where the instance's options say so
		// (HttpProtocolIpv6), on subnets with IPv6.
		addresses: []netip.Addr{linkLocal(), netip.MustParseAddr("fd00:ec2::254")},
		userData:  awsUserData,
	}
}

const (
	// tokenLifetime is for how long a token is asked, in seconds: from 1 to 21600 are
	// allowed. It is used once, at once.
	tokenLifetime = "60"
	// maxToken is how many bytes a token may have. AWS's have 56.
	maxToken = 1 << 10
)

// errToken says that what came for a token can't be one.
var errToken = errors.New("it answers with something else than a token")

func awsUserData(ctx context.Context, c *client) ([]byte, error) {
	token, _, err := c.send(ctx, request{
		method: http.MethodPut, path: "/latest/api/token", limit: maxToken + 1,
		header: map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": tokenLifetime},
	})
	if err != nil {
		return nil, fmt.Errorf("get a token: %w", err)
	}
	if !isToken(token) {
		return nil, errToken
	}
	data, _, err := c.send(ctx, request{
		method: http.MethodGet, path: "/latest/user-data", limit: c.limit,
		header: map[string]string{"X-aws-ec2-metadata-token": string(token)},
	})
	if errors.Is(err, statusError(http.StatusNotFound)) {
		return nil, ErrNone
	}
	return data, err
}

// isToken tells whether bytes can go into a header as a token: printable ASCII
// without blanks.
func isToken(b []byte) bool {
	return len(b) > 0 && len(b) <= maxToken && !bytes.ContainsFunc(b, func(r rune) bool { return r <= ' ' || r > '~' })
}

// GoogleCloud returns Compute Engine's metadata server, which has user data as the
// instance's attribute user-data. It is asked at its addresses: its name,
// metadata.google.internal, would first need the network's name servers.
//
// https://cloud.google.com/compute/docs/metadata/querying-metadata
func GoogleCloud() Service {
	return Service{
		name: "Google Cloud",
		// The second one is for machines that have IPv6 only.
		addresses: []netip.Addr{linkLocal(), netip.MustParseAddr("fd20:ce::254")},
		userData:  googleUserData,
	}
}

// errFlavor says that an answer isn't from Google's server.
var errFlavor = errors.New("it answers without the header Metadata-Flavor: Google, so it isn't Google's")

func googleUserData(ctx context.Context, c *client) ([]byte, error) {
	const flavorHeader, flavor = "Metadata-Flavor", "Google"
	data, header, err := c.send(ctx, request{
		method: http.MethodGet, host: "metadata.google.internal",
		path: "/computeMetadata/v1/instance/attributes/user-data", limit: c.limit,
		header: map[string]string{flavorHeader: flavor},
	})
	switch status := statusError(0); {
	case err != nil && !errors.As(err, &status):
		return nil, err
	case header.Get(flavorHeader) != flavor:
		clear(data)
		return nil, errFlavor
	case status == http.StatusNotFound:
		return nil, ErrNone
	}
	return data, err
}

// Azure returns the Azure Instance Metadata Service, which has user data in base64.
// It may answer for a while that there is none.
//
// https://learn.microsoft.com/en-us/azure/virtual-machines/instance-metadata-service
// https://learn.microsoft.com/en-us/azure/virtual-machines/user-data
func Azure() Service {
	return Service{name: "Azure", addresses: []netip.Addr{linkLocal()}, userData: azureUserData}
}

// errBase64 says that user data isn't base64. It doesn't repeat any of it.
var errBase64 = errors.New("it answers with something else than base64")

func azureUserData(ctx context.Context, c *client) ([]byte, error) {
	text, _, err := c.send(ctx, request{
		method: http.MethodGet, path: "/metadata/instance/compute/userData",
		// The first version that has user data. A single value comes as text only.
		query: "api-version=2021-01-01&format=text",
		// A line's end may follow.
		limit:  base64.StdEncoding.EncodedLen(c.limit) + len("\r\n"),
		header: map[string]string{"Metadata": "true"},
	})
	defer func() { clear(text) }()
	if errors.Is(err, statusError(http.StatusNotFound)) {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	return decodeAzure(text, c.limit)
}

// decodeAzure decodes base64 to as many bytes as limit. There may be more of it than
// what decodes to them, cut off anywhere.
func decodeAzure(text []byte, limit int) ([]byte, error) {
	text = bytes.TrimSpace(text)
	text = text[:min(len(text), base64.StdEncoding.EncodedLen(limit))]
	if bytes.ContainsAny(text, "\r\n") { // Go's decoder skips them.
		return nil, errBase64
	}
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(data, text)
	if err != nil {
		clear(data)
		return nil, errBase64
	}
	return data[:min(n, limit)], nil
}
