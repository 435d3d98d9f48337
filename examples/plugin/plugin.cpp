#include "support/component.h"

TW_PLUGIN("acme", "1.0")
