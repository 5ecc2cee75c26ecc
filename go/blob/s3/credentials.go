package s3

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"powercloud.unidatum.com/go/blob"
)

// Variables are the names of the environment variables that hold a bucket's
// credentials.
type Variables struct {
	KeyID, Secret string
	// Token is optional.
	Token string
}

// VariablesOf returns the variables of the credentials that a location names:
// NAME_ACCESS_KEY_ID, NAME_SECRET_ACCESS_KEY and NAME_SESSION_TOKEN.
func VariablesOf(spec blob.S3Spec) Variables {
	return Variables{
		KeyID:  spec.Creds + "_ACCESS_KEY_ID",
		Secret: spec.Creds + "_SECRET_ACCESS_KEY",
		Token:  spec.Creds + "_SESSION_TOKEN",
	}
}

// read takes the credentials from the environment. There is no other source: no
// file, no profile, no metadata service.
func (v Variables) read(getenv func(string) string) (aws.Credentials, error) {
	found := aws.Credentials{
		AccessKeyID: getenv(v.KeyID), SecretAccessKey: getenv(v.Secret), SessionToken: getenv(v.Token),
		Source: "environment",
	}
	switch {
	case found.AccessKeyID == "" && found.SecretAccessKey == "":
		return found, fmt.Errorf("its credentials are missing: set %s and %s (creds=NAME in the location names other variables)", v.KeyID, v.Secret)
	case found.AccessKeyID == "":
		return found, fmt.Errorf("its credentials are incomplete: set %s as well as %s", v.KeyID, v.Secret)
	case found.SecretAccessKey == "":
		return found, fmt.Errorf("its credentials are incomplete: set %s as well as %s", v.Secret, v.KeyID)
	}
	for _, variable := range []struct{ name, value string }{
		{v.KeyID, found.AccessKeyID}, {v.Secret, found.SecretAccessKey}, {v.Token, found.SessionToken},
	} {
		if strings.ContainsFunc(variable.value, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return found, fmt.Errorf("%s has a blank, a line break or another character in it that no key has", variable.name)
		}
	}
	return found, nil
}

// provider returns the credentials as the SDK wants them.
func provider(fixed aws.Credentials) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return fixed, nil })
}
