#!/bin/sh
# Creates missing OAuth clients: those that gateway and agents use to introspect tokens and register, and the operator's.
# Existing clients are not changed: to change a secret, delete the client first (hydra delete oauth2-client).
set -eu
hydra=${HYDRA_ADMIN_URL:-http://hydra:4445}
until curl -sf -o /dev/null "$hydra/health/ready"; do sleep 1; done

# Clients can request tokens whose only audience is one agent.
audience=
for agent in $AGENTS; do audience="$audience${audience:+, }\"${PUBLIC_URL:-http://localhost:7400}/agents/$agent\""; done

make() {
  case $2 in
    *[!A-Za-z0-9._~-]* | '') echo "$1: its secret must be of letters, digits and . _ ~ -" >&2; exit 1 ;;
  esac
  code=$(curl -s -o /dev/null -w '%{http_code}' -X POST "$hydra/admin/clients" -H 'Content-Type: application/json' -d "{
    \"client_id\": \"$1\", \"client_secret\": \"$2\", \"grant_types\": [\"client_credentials\"],
    \"scope\": \"$3\", \"audience\": [$audience], \"token_endpoint_auth_method\": \"client_secret_post\"}")
  case $code in
    201) echo "$1: made" ;;
    409) echo "$1: there already" ;;
    *) echo "$1: Hydra answered $code" >&2; exit 1 ;;
  esac
}

make parley-gateway "$GATEWAY_CLIENT_SECRET" 'agent:read'
make parley-operator "$OPERATOR_CLIENT_SECRET" 'agent:read agent:write agent:admin'
for agent in $AGENTS; do make "parley-$agent" "$AGENT_CLIENT_SECRET" 'agent:read agent:write'; done
